"""The SDK against a real server: what it sends is there, as RocketMQ's clients would read it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import uvloop
from tests.gateway.remoting.client import Client as Reader
from tests.gateway.remoting.client import messages
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting.message import Message as Stored
from rockgate.sdk import Message, Outcome, Producer, Received, Refused, Rollback, SendFailed
from rockgate.sdk import Queue as SdkQueue

Read = Callable[[str], list[Stored]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("sdk"), rocketmq=True) as running:
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


async def test_messages_are_stored_as_they_were_sent(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="shop") as producer:
        large = b"0123456789" * 1000
        first = await producer.send(
            Message("sdk-plain", b"one", tag="T", keys=["a", "b"], properties={"c": "d"}, flag=3)
        )
        await producer.send(Message("sdk-plain", large))
        await producer.send_oneway(Message("sdk-plain", b"three"))
        await until(lambda: len(read("sdk-plain")) == 3, "all three are there")
    found = {message.body: message for message in read("sdk-plain")}
    assert found.keys() == {b"one", large, b"three"}
    one = found[b"one"]
    assert (one.properties["TAGS"], one.properties["KEYS"], one.flag) == ("T", "a b", 3)
    assert one.properties["c"] == "d"
    assert one.message_id == first.message_id
    assert (one.queue_id, one.queue_offset) == (first.queue.id, first.offset)
    assert one.offset_message_id == first.offset_message_id


async def test_many_sends_at_once_share_one_connection(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="many") as producer:
        bodies = [b"%d" % number for number in range(500)]
        results = await asyncio.gather(
            *(producer.send(Message("sdk-many", body), timeout_s=30) for body in bodies)
        )
    assert {message.body for message in read("sdk-many")} == set(bodies)
    assert len({(result.queue, result.offset) for result in results}) == 500


def test_it_works_on_uvloop(name_server: str, read: Read) -> None:
    async def scenario() -> None:
        async with Producer(name_server, group="uv") as producer:
            await asyncio.gather(
                *(producer.send(Message("sdk-uv", b"%d" % n), timeout_s=30) for n in range(50))
            )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
    assert len(read("sdk-uv")) == 50


@pytest.mark.row("P-13")
async def test_messages_of_one_key_lie_in_one_queue_in_order(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="keys") as producer:
        await producer.send(Message("sdk-keys", b"first"), key="k")
        for number in range(9):
            await producer.send(Message("sdk-keys", b"%d" % number), key="o-1")
    found = [message for message in read("sdk-keys") if message.body != b"first"]
    assert len({message.queue_id for message in found}) == 1
    assert [message.body for message in found] == [b"%d" % number for number in range(9)]


@pytest.mark.row("P-40")
async def test_a_batch_is_stored_in_one_queue_with_its_ids(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="batches", body_size_max=4096) as producer:
        await producer.send(Message("sdk-batch", b"makes the topic"))
        results = await producer.send_batch(
            [Message("sdk-batch", b"%04d" % number * 50, tag="T") for number in range(100)],
            timeout_s=30,
        )
    found = [m for m in read("sdk-batch") if m.body != b"makes the topic"]
    assert [m.body[:4] for m in found] == [b"%04d" % number for number in range(100)]
    assert [m.message_id for m in found] == [result.message_id for result in results]
    assert [m.queue_offset for m in found] == [result.offset for result in results]
    assert [m.offset_message_id for m in found] == [r.offset_message_id for r in results]


async def test_a_delayed_message_comes_when_its_time_is_there(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="delays") as producer:
        begun = datetime.now(UTC)
        when = begun + timedelta(seconds=2)
        await producer.send(Message("sdk-delay", b"at once"))
        for delay in (timedelta(seconds=2), when, 1):
            await producer.send(Message("sdk-delay", b"later", delay=delay))
        await until(lambda: len(read("sdk-delay")) == 4, "all are there", 30)
    late = [message for message in read("sdk-delay") if message.body == b"later"]
    assert min(m.store_ms for m in late) >= int(begun.timestamp() * 1000) + 1000
    by_time = sorted(m.store_ms for m in late)
    assert by_time[1] >= int(when.timestamp() * 1000)


async def test_a_delayed_message_is_taken_back_once(name_server: str, read: Read) -> None:
    async with Producer(name_server, group="recalls") as producer:
        await producer.send(Message("sdk-recall", b"makes the topic"))
        soon = timedelta(seconds=2)
        taken = await producer.send(Message("sdk-recall", b"taken back", delay=timedelta(hours=1)))
        await producer.send(Message("sdk-recall", b"stays", delay=soon))
        assert await producer.recall(taken) == taken.message_id
        with pytest.raises(Refused, match="recall from sdk-recall"):
            await producer.recall(taken)
        await until(lambda: len(read("sdk-recall")) == 2, "the other one is there", 30)
    assert {message.body for message in read("sdk-recall")} == {b"makes the topic", b"stays"}


async def test_a_request_gets_the_reply_of_whoever_read_it(name_server: str, read: Read) -> None:
    async with (
        Producer(name_server, group="askers") as asker,
        Producer(name_server, group="answerers") as answerer,
    ):
        await asker.send(Message("sdk-asked", b"makes the topic"))
        asking = asyncio.create_task(asker.request(Message("sdk-asked", b"?"), timeout_s=30))
        await until(lambda: len(read("sdk-asked")) == 2, "the request is there", 30)
        [request] = [message for message in read("sdk-asked") if message.body == b"?"]
        await answerer.reply(request, b"yes")
        assert (await asking).body == b"yes"


async def test_what_the_server_refuses_says_why(name_server: str) -> None:
    async with Producer(name_server, group="wrong") as producer:
        await producer.send(Message("sdk-plain", b"x"))
        [queue, *_] = await producer.queues("sdk-plain")
        with pytest.raises(Refused, match="queue"):
            await producer.send(
                Message("sdk-plain", b"x"), queue=SdkQueue("sdk-plain", queue.broker, 99)
            )


async def unknown(_: Received) -> Outcome:
    return Outcome.UNKNOWN


@pytest.mark.row("P-31")
async def test_a_transaction_shows_its_message_when_it_commits(
    name_server: str, read: Read
) -> None:
    async with Producer(name_server, group="payers", checker=unknown) as producer:
        await producer.send(Message("sdk-paid", b"makes the topic"))
        async with producer.transaction(Message("sdk-paid", b"paid", tag="T")) as tx:
            assert len(read("sdk-paid")) == 1
        assert tx.is_confirmed
        assert sorted(m.body for m in read("sdk-paid")) == [b"makes the topic", b"paid"]
        async with producer.transaction(Message("sdk-paid", b"never")) as tx:
            raise Rollback
        assert tx.is_confirmed
        assert len(read("sdk-paid")) == 2


@pytest.mark.row("P-36")
async def test_an_unknown_outcome_is_settled_by_another_producer_of_the_group(
    name_server: str, read: Read
) -> None:
    asked: list[Received] = []

    async def checker(message: Received) -> Outcome:
        asked.append(message)
        return Outcome.COMMIT if message.body == b"kept" else Outcome.ROLLBACK

    async with Producer(name_server, group="settlers", checker=unknown) as producer:
        await producer.send(Message("sdk-settled", b"makes the topic"))
        for body in (b"kept", b"dropped"):
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(
                    Message("sdk-settled", body), check_after=timedelta(seconds=1)
                ):
                    raise ZeroDivisionError
    async with Producer(name_server, group="settlers", checker=checker) as other:
        await other.send(Message("sdk-settled", b"from the other"))
        await until(lambda: len(asked) >= 2, "both were asked for", 60)
        await until(lambda: len(read("sdk-settled")) == 3, "the kept one is there", 20)
    assert {m.body for m in read("sdk-settled")} == {
        b"makes the topic",
        b"from the other",
        b"kept",
    }


async def test_what_was_acknowledged_is_there_after_a_kill(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The server is killed and started again under load; the producer goes on by itself."""
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
