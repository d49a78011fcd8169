"""A group of which one member is Apache's Java client and another our Python client."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.java_member import Java
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker, apache_broker, rockgate_broker
from behaviours.sdk_suites import Listening, numbered, send, send_to_each
from bench.peers import rocketmq
from tests.waiting import until

from rockgate.sdk import Message, Producer
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Model, Start
from rockgate.sdk.received import Received

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "tests" / "sdk" / "consumer" / "allocations.txt"
LINES = (rocketmq.NAME, rocketmq.OLD)
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


@pytest.fixture(
    scope="module",
    params=["rockgate", *(pytest.param(line, marks=pytest.mark.long) for line in LINES)],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    if request.param in LINES:
        with apache_broker(request.param) as found:
            yield found
    else:
        with rockgate_broker(tmp_path_factory.mktemp("mixing")) as found:
            yield found


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
    topic = group = f"mixed-{request.node.callspec.params['java_client']}"
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

    def is_split(theirs: set[int], ours: set[int]) -> bool:
        return not theirs & ours and theirs | ours == set(range(5)) and len(ours) in (2, 3)

    async def produce(name: str) -> set[str]:
        bodies = [f"{name}{number}" for number in range(20)]
        async with Producer(broker.namesrv, group="shop", timeout_s=15) as producer:
            for body in bodies:
                await producer.send(Message(topic, body.encode()))
        return set(bodies)

    async def when_all(sent: set[str]) -> None:
        async with asyncio.timeout(60):
            while not sent <= {*ours, *theirs}:
                theirs.update(await java_client.ask("mix-seen", group))

    await java_client.ask("mix-join", broker.namesrv, topic, group)
    sent = await produce("alone")
    await when_all(sent)
    async with consumer:
        async with asyncio.timeout(60):
            # Queues are released and taken up one by one: what counts is where that ends. Theirs
            # are asked for first: a loop that awaits nothing would hold up our rounds.
            while not is_split(await their_queues(), our_queues()):
                pass
        both = await produce("both")
        await when_all(sent | both)
        assert ours, "ours has a part of them"
        assert theirs & both, "and theirs another"
        await java_client.ask("mix-leave", group)
        await until(lambda: our_queues() == set(range(5)), "all queues are ours", 60)
        last = await produce("last")
        await until(lambda: last <= set(ours), "everything comes to ours", 60)
    assert {*ours, *theirs} == sent | both | last


async def test_order_holds_across_both_clients(
    broker: Broker, java_client: Java, request: pytest.FixtureRequest
) -> None:
    topic = group = f"ordered-{request.node.callspec.params['java_client']}"
    broker.make_topic(topic, QUEUE_COUNT)
    ours: list[Given] = []
    theirs: list[Given] = []
    settings = ConsumerSettings(
        start=Start.BEGINNING, rebalance_s=1.0, is_orderly=True, lock_renew_s=1.0
    )
    consumer = Consumer(broker.namesrv, group=group, settings=settings)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        ours.append((message.queue.id, int(message.body), time.time_ns() // 1000))

    def our_count() -> int:
        return sum(queue.topic == topic for queue in consumer.queues)

    async def when_all(end: int) -> None:
        wanted = {(queue, number) for queue in range(QUEUE_COUNT) for number in range(end)}
        async with asyncio.timeout(90):
            while not wanted <= {each[:2] for each in (*ours, *theirs)}:
                log = await java_client.ask("mix-log", group)
                theirs[:] = [given(word) for word in log]

    await java_client.ask("mix-join", broker.namesrv, topic, group, "orderly")
    await send_to_each(broker, topic, 10)
    await when_all(10)
    assert not ours
    async with consumer:
        await until(lambda: our_count() == QUEUE_COUNT // 2, "half of the queues", 90)
        await send_to_each(broker, topic, 20, 10)
        await when_all(30)
        half = {queue for queue, _, _ in ours}
        assert len(half) == QUEUE_COUNT // 2
        await java_client.ask("mix-leave", group)
        await send_to_each(broker, topic, 20, 30)
        await when_all(50)
    assert {queue for queue, number, _ in ours if number >= 30} == set(range(QUEUE_COUNT))
    for queue in range(QUEUE_COUNT):
        every = sorted((at, number) for its, number, at in (*ours, *theirs) if its == queue)
        numbers = [number for _, number in every]
        # Who takes a queue over may go back to what was committed last, and never skips anything.
        assert all(after <= before + 1 for before, after in pairwise(numbers)), numbers
        assert sum(after <= before for before, after in pairwise(numbers)) <= 2, numbers


Given = tuple[int, int, int]
"""Queue, number and time in microseconds."""


def given(word: str) -> Given:
    queue, number, at = word.split(":")
    return int(queue), int(number), int(at)


async def test_broadcasting_both_get_everything_and_one_continues_with_the_others_file(
    broker: Broker, java_client: Java, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    topic = group = f"news-{request.node.callspec.params['java_client']}"
    broker.make_topic(topic, QUEUE_COUNT)

    def member(folder: Path) -> Listening:
        settings = ConsumerSettings(
            model=Model.BROADCASTING,
            start=Start.BEGINNING,
            rebalance_s=1.0,
            offsets_folder=folder,
        )
        return Listening(broker, group, topic, settings=settings)

    async def theirs() -> set[bytes]:
        return {word.encode() for word in await java_client.ask("mix-seen", group)}

    await send(broker, topic, *numbered(8))
    await java_client.ask("mix-join", broker.namesrv, topic, group, "broadcasting")
    async with member(tmp_path) as ours:
        await send(broker, topic, *numbered(16, 8))
        await ours.expect(*numbered(16))
        async with asyncio.timeout(60):
            while await theirs() != set(numbered(16)):
                pass
    assert sorted(ours.bodies) == numbered(16)
    (client_id,) = await java_client.ask("mix-id", group)
    await java_client.ask("mix-leave", group)
    file = java_client.folder / ".rocketmq_offsets" / client_id / group / "offsets.json"
    assert file.is_file()
    await send(broker, topic, *numbered(24, 16))
    async with member(file.parent) as next_one:
        await next_one.expect(*numbered(24, 16))
    assert sorted(next_one.bodies) == numbered(24, 16)


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
