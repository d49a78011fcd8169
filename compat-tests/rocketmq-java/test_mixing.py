"""A group of which one member is Apache's Java client and another our Python client."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.rocketmq_brokers import Broker, rockgate_broker
from behaviours.running import Answering
from tests.waiting import until

from rockgate.sdk import Message, Producer
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "tests" / "sdk" / "consumer" / "allocations.txt"
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with rockgate_broker(tmp_path_factory.mktemp("mixing")) as found:
        yield found


class Java:
    """Apache's client, in a process of its own."""

    def __init__(self, version: str, folder: Path) -> None:
        java, *rest = java_program(HERE, version, "Program")
        flags = (
            "-Drocketmq.client.logUseSlf4j=true",
            f"-Duser.home={folder}",
            "-Drocketmq.client.rebalance.waitInterval=1000",
        )
        self._program = Answering([java, *flags, *rest], folder / "java.log")

    async def ask(self, *words: object) -> list[str]:
        _, said = await asyncio.to_thread(self._program.ask, " ".join(map(str, words)))
        assert not said.startswith("FAIL"), said
        return [word for word in said.removeprefix("ok").strip().split(",") if word]

    def end(self) -> None:
        self._program.end()


@pytest.fixture(scope="module", params=["v5", pytest.param("v4", marks=pytest.mark.long)])
def java_client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Java]:
    try:
        found = Java(request.param, tmp_path_factory.mktemp("java"))
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield found
    found.end()


async def test_queues_are_split_between_both_clients_and_handed_over_without_loss(
    broker: Broker, java_client: Java, request: pytest.FixtureRequest
) -> None:
    version = request.node.callspec.params["java_client"]
    topic = group = f"mixed-{version}"
    broker.make_topic(topic, 5)
    ours: list[str] = []
    theirs: set[str] = set()
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=1.0)
    consumer = Consumer(broker.namesrv, group=group, settings=settings)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        ours.append(message.body.decode())

    def our_queues() -> set[int]:
        return {queue.id for queue in consumer.queues if queue.topic == topic}

    async def their_queues() -> set[int]:
        return set(map(int, await java_client.ask("mix-queues", topic, group)))

    async def send(name: str) -> set[str]:
        bodies = [f"{name}{number}" for number in range(20)]
        async with Producer(broker.namesrv, group="shop") as producer:
            for body in bodies:
                await producer.send(Message(topic, body.encode()))
        return set(bodies)

    async def when_all(sent: set[str]) -> None:
        async with asyncio.timeout(60):
            while not sent <= {*ours, *theirs}:
                theirs.update(await java_client.ask("mix-seen", group))

    await java_client.ask("mix-join", broker.namesrv, topic, group)
    sent = await send("alone")
    await when_all(sent)
    async with consumer:
        async with asyncio.timeout(60):
            while len(our_queues()) not in (2, 3) or our_queues() & await their_queues():
                pass
            assert our_queues() | await their_queues() == set(range(5))
        both = await send("both")
        await when_all(sent | both)
        assert ours, "ours has a part of them"
        assert theirs & both, "and theirs another"
        await java_client.ask("mix-leave", group)
        await until(lambda: our_queues() == set(range(5)), "all queues are ours", 60)
        last = await send("last")
        await until(lambda: last <= set(ours), "everything comes to ours", 60)
    assert {*ours, *theirs} == sent | both | last


def test_the_table_of_allocations_is_what_apaches_classes_say(
    java_client: Java, request: pytest.FixtureRequest
) -> None:
    version = request.node.callspec.params["java_client"]
    done = subprocess.run(
        java_program(HERE, version, "Allocations"), capture_output=True, text=True, timeout=60
    )
    names = ("AVG", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
    said = [line for line in done.stdout.splitlines() if line.startswith(names) and ":" in line]
    assert said == TABLE.read_text(encoding="utf-8").splitlines()
