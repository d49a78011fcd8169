"""The SDK against a real server: other loops, and a server that dies.

What is sent and stored is a matter of compat-tests/rockgate-sdk, which asks Apache RocketMQ too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import uvloop
from tests.gateway.remoting.client import Client as Reader
from tests.gateway.remoting.client import messages
from tests.gateway.server import RunningServer
from tests.sdk.fakeserver import FakeNameServer, FakeServer
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.message import Message as Stored
from rockgate.sdk import (
    Client,
    LinkSettings,
    Message,
    Outcome,
    Producer,
    Received,
    Refused,
    SendFailed,
    SendStatus,
)
from rockgate.sdk.client.connection import Link

Read = Callable[[str], list[Stored]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.immune_ms=100", "remoting.check_interval_ms=200"]
    folder = tmp_path_factory.mktemp("sdk")
    with RunningServer(folder, settings=settings, rocketmq=True) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def read(server: RunningServer) -> Read:
    """Every message of a topic, queue by queue."""

    def all_of(topic: str) -> list[Stored]:
        reader = Reader(server.address("remoting"))
        try:
            found: list[Stored] = []
            for queue in range(4):
                while True:
                    offset = sum(message.queue_id == queue for message in found)
                    answer = reader.pull(topic, offset, queue=queue)
                    if answer.code != 0:
                        break
                    found += messages(answer)
            return found
        finally:
            reader.socket.close()

    return all_of


def test_it_works_on_uvloop(name_server: str, read: Read) -> None:
    async def scenario() -> None:
        async with Producer(name_server, group="uv") as producer:
            await asyncio.gather(
                *(producer.send(Message("sdk-uv", b"%d" % n), timeout_s=30) for n in range(50))
            )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
    assert len(read("sdk-uv")) == 50


async def rolled_back(_: Received) -> Outcome:
    return Outcome.ROLLBACK


async def test_a_block_that_outlasts_the_checks_immunity_ends_committed_and_is_delivered(
    name_server: str, read: Read
) -> None:
    checks: list[Command] = []
    async with (
        Client(name_server) as client,
        Producer(client=client, group="slow-payers", checker=rolled_back) as producer,
    ):
        answer = client.handlers[RequestCode.CHECK_TRANSACTION_STATE]

        def noting(link: Link, command: Command) -> None:
            checks.append(command)
            answer(link, command)

        client.handlers[RequestCode.CHECK_TRANSACTION_STATE] = noting
        async with producer.transaction(Message("sdk-slow", b"paid")) as tx:
            await until(lambda: len(checks) >= 2, "the server has asked twice", 60)
        assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, True)
    assert [message.body for message in read("sdk-slow")] == [b"paid"]


async def test_a_commit_behind_the_answer_of_another_process_is_not_confirmed(
    server: RunningServer, name_server: str, read: Read
) -> None:
    async with Producer(name_server, group="outrun", checker=rolled_back) as producer:
        async with producer.transaction(Message("sdk-outrun", b"paid")) as tx:
            other = Reader(server.address("remoting"))
            header = {
                "producerGroup": "outrun",
                "tranStateTableOffset": tx.result.offset,
                "commitLogOffset": 0,
                "commitOrRollback": 12,
                "fromTransactionCheck": "true",
            }
            assert other.ask(37, header).code == 0
            other.socket.close()
        assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, False)
        assert isinstance(tx.failure, Refused)
        assert tx.failure.code == ResponseCode.TRANSACTION_SHOULD_ROLLBACK
    assert read("sdk-outrun") == []


async def test_a_restarted_producer_is_asked_though_it_sends_nothing(
    name_server: str, read: Read
) -> None:
    async def unknown(_: Received) -> Outcome:
        return Outcome.UNKNOWN

    async def committed(message: Received) -> Outcome:
        return Outcome.COMMIT if message.keys == ("o-1",) else Outcome.UNKNOWN

    async with Producer(name_server, group="restarted", checker=unknown) as producer:
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction(Message("sdk-again", b"paid", keys=["o-1"])):
                raise ZeroDivisionError
    async with Producer(name_server, group="restarted", checker=committed):
        await until(lambda: read("sdk-again"), "the half message was settled", 60)
    assert [message.body for message in read("sdk-again")] == [b"paid"]


async def test_closing_with_sends_under_way_tells_what_became_of_each(
    name_server: str, read: Read
) -> None:
    producer = await Producer(name_server, group="drained", timeout_s=60).open()
    sending = [
        asyncio.create_task(producer.send(Message("sdk-drained", b"%d" % number)))
        for number in range(200)
    ]
    while not producer._open.open_calls.count:  # a pause of any length might outlast all of them
        assert not all(task.done() for task in sending)
        await asyncio.sleep(0)
    await producer.close(timeout_s=60)
    results = await asyncio.gather(*sending)
    assert {result.status for result in results} == {SendStatus.OK}
    assert len(read("sdk-drained")) == 200


async def test_a_server_that_accepts_and_says_nothing_is_dialled_again() -> None:
    with FakeServer() as mute, FakeNameServer() as names:
        names.broker = "{}:{}".format(*mute.address)
        settings = LinkSettings(silence_max_s=0.3)
        async with (
            Client("{}:{}".format(*names.address), settings=settings) as client,
            Producer(client=client, group="mute") as producer,
        ):
            for _ in range(3):
                with pytest.raises(SendFailed):
                    await producer.send(Message("t", b"x"), timeout_s=0.4)
            assert len(mute.accepted) >= 3


async def test_what_was_acknowledged_is_there_after_a_kill(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The server is killed and restarted under load; the producer continues by itself."""
    acknowledged: set[bytes] = set()
    with RunningServer(tmp_path_factory.mktemp("killed"), rocketmq=True) as server:
        host, port = server.address("namesrv")

        async def work(worker: int) -> None:
            number = 0
            while not is_over:
                body = b"%d-%d" % (worker, number)
                with suppress(SendFailed, Refused):
                    await producer.send(Message("sdk-killed", body), timeout_s=10)
                    acknowledged.add(body)
                number += 1

        is_over = False
        async with Producer(f"{host}:{port}", group="killed") as producer:
            workers = [asyncio.create_task(work(worker)) for worker in range(8)]
            await until(lambda: len(acknowledged) > 200, "sends go through", 60)
            await asyncio.to_thread(server.kill)
            before = len(acknowledged)
            await asyncio.to_thread(server.restart)
            await until(lambda: len(acknowledged) > before + 200, "sends go on", 60)
            is_over = True
            await asyncio.gather(*workers)
        reader = Reader(server.address("remoting"))
        found: set[bytes] = set()
        for queue in range(4):
            offset = 0
            while (answer := reader.pull("sdk-killed", offset, queue=queue)).code == 0:
                pulled = messages(answer)
                offset += len(pulled)
                found |= {message.body for message in pulled}
        reader.socket.close()
        assert acknowledged - found == set()
