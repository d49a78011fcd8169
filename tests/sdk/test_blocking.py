"""The blocking face against a real server: docs/reference/sdk.md, "Without a loop"."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from datetime import timedelta

import pytest
from tests.gateway.server import RunningServer
from tests.sdk.fakeserver import FakeNameServer
from tests.waiting import wait_until

from rockgate.sdk import (
    Closed,
    InvalidMessage,
    Message,
    Outcome,
    Received,
    Rollback,
    SdkError,
    SendResult,
)
from rockgate.sdk.blocking import BlockingProducer
from rockgate.sdk.producer import outgoing


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("blocking"), rocketmq=True) as running:
        host, port = running.address("namesrv")
        yield f"{host}:{port}"


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "rockgate-sdk"]


def test_all_blocking_producers_share_one_thread_that_ends_with_the_last(name_server: str) -> None:
    assert threads() == []
    with BlockingProducer(name_server, group="one") as one:
        one.send(Message("blocking", b"x"))
        with BlockingProducer(name_server, group="two") as two:
            two.send(Message("blocking", b"y"))
            assert len(threads()) == 1
        one.send(Message("blocking", b"z"))
        assert len(threads()) == 1
    assert threads() == []
    with BlockingProducer(name_server, group="three") as again:
        again.send(Message("blocking", b"x"))


def test_calls_wait_and_futures_do_not(name_server: str) -> None:
    with BlockingProducer(name_server, group="calls") as producer:
        first = producer.send(Message("blocking-calls", b"x"), key="k")
        futures = [
            producer.submit(Message("blocking-calls", b"%d" % number), key="k", timeout_s=30)
            for number in range(100)
        ]
        results = [future.result(60) for future in futures]
        assert {result.queue for result in results} == {first.queue}
        assert sorted(result.offset for result in results) == list(range(1, 101))
        batch = producer.send_batch([Message("blocking-calls", b"b")] * 3, queue=first.queue)
        assert [result.offset for result in batch] == [101, 102, 103]
        producer.send_oneway(Message("blocking-calls", b"o"))
        assert first.queue in producer.queues("blocking-calls")


@pytest.mark.row("P-08")
def test_a_callback_comes_once_with_a_result_or_an_error(name_server: str) -> None:
    called: list[object] = []
    with BlockingProducer(name_server, group="callbacks") as producer:
        done = threading.Semaphore(0)

        def note(future: Future[SendResult]) -> None:
            called.append(future.exception())
            done.release()

        for body in (b"x", b""):
            message = Message("blocking-back", body)
            producer.submit(message).add_done_callback(note)
        assert done.acquire(timeout=60)
        assert done.acquire(timeout=60)
    assert sorted(type(one).__name__ for one in called) == ["InvalidMessage", "NoneType"]


def test_a_transaction_is_a_plain_block(name_server: str) -> None:
    def checker(_: Received) -> Outcome:
        return Outcome.UNKNOWN

    with BlockingProducer(name_server, group="payers", checker=checker) as producer:
        with producer.transaction(Message("blocking-paid", b"x")) as tx:
            assert tx.result.message_id
        assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, True)
        with producer.transaction(Message("blocking-paid", b"y")) as tx:
            raise Rollback
        assert tx.outcome is Outcome.ROLLBACK
        with pytest.raises(ZeroDivisionError), producer.transaction(Message("a", b"z")) as tx:
            raise ZeroDivisionError
        assert tx.outcome is Outcome.UNKNOWN


def test_errors_reach_the_caller_and_nothing_works_outside_the_block(name_server: str) -> None:
    producer = BlockingProducer(name_server, group="errors")
    with pytest.raises(Closed):
        producer.send(Message("t", b"x"))
    with producer, pytest.raises(InvalidMessage, match="Body is empty"):
        producer.send(Message("t", b""))
    with pytest.raises(Closed):
        producer.send(Message("t", b"x"))
    with pytest.raises(Closed, match="opened only once"):
        producer.open()
    assert threads() == []


@pytest.fixture
def away() -> Iterator[tuple[str, int]]:
    """A name server that knows a broker where no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken, FakeNameServer() as server:
        server.broker = f"127.0.0.1:{taken.getsockname()[1]}"
        taken.close()
        yield server.address


def test_closing_ends_every_wait_of_every_thread(
    away: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three wait in a back-off, one through a future, one for a body that is being compressed.

    The client ends the first; of the last only the loop knows.
    """
    is_compressing, may_end = threading.Event(), threading.Event()

    def compress(body: bytes, _: object) -> bytes:
        is_compressing.set()
        may_end.wait(120)
        return body

    monkeypatch.setattr(outgoing, "compress", compress)
    producer = BlockingProducer("{}:{}".format(*away), group="left", timeout_s=600).open()
    ended: list[type[BaseException]] = []

    def call(what: Callable[[], object]) -> None:
        try:
            what()
        except SdkError as error:
            ended.append(type(error))

    message = Message("t", b"x")
    calls: list[Callable[[], object]] = [
        lambda: producer.send(message),
        lambda: producer.send_batch([message]),
        lambda: producer.request(message),
        lambda: producer.send(Message("t", bytes(outgoing.COMPRESS_ASIDE_BYTES + 1))),
    ]
    future = producer.submit(message)
    waiting = [threading.Thread(target=call, args=(each,)) for each in calls]
    for thread in waiting:
        thread.start()
    inner = producer._inner._sender
    assert inner is not None
    try:
        wait_until(lambda: inner.open_calls.count == 5, "all are under way")
        assert is_compressing.wait(30)
        producer.close(timeout_s=0.1)
        for thread in waiting:
            thread.join(30)
            assert not thread.is_alive()
    finally:
        may_end.set()
    assert ended == [Closed] * 4
    with pytest.raises((Closed, CancelledError)):
        future.result(30)
    assert threads() == []


def test_a_slow_checker_holds_up_no_other_producer(name_server: str) -> None:
    is_asked, may_end = threading.Event(), threading.Event()

    def checker(_: Received) -> Outcome:
        is_asked.set()
        may_end.wait(120)
        return Outcome.UNKNOWN

    slow = BlockingProducer(name_server, group="slow", checker=checker).open()
    try:
        soon = timedelta(seconds=0)
        with (
            pytest.raises(ZeroDivisionError),
            slow.transaction(Message("blocking-slow", b"x"), check_after=soon),
        ):
            raise ZeroDivisionError
        assert is_asked.wait(60)
        slow.close()
        assert threads() == [], "closed while the checker runs"
        with BlockingProducer(name_server, group="other") as other:
            other.send(Message("blocking-slow", b"y"))
    finally:
        may_end.set()


def test_a_producer_can_be_opened_while_another_closes(away: tuple[str, int]) -> None:
    """The first waits for what is under way; the second continues with its loop, and ends it."""
    address = "{}:{}".format(*away)
    first = BlockingProducer(address, group="first", timeout_s=600).open()
    future = first.submit(Message("t", b"x"))
    closing = threading.Thread(target=first.close, args=(3.0,))
    closing.start()
    with BlockingProducer(address, group="second"):
        assert len(threads()) == 1
    closing.join(60)
    assert threads() == []
    with pytest.raises((Closed, CancelledError)):
        future.result(30)


def test_closing_in_a_callback_is_refused_and_can_be_done_elsewhere(name_server: str) -> None:
    producer = BlockingProducer(name_server, group="calling-back").open()
    refused: list[str] = []

    def close(_: Future[SendResult]) -> None:
        try:
            producer.close()
        except SdkError as error:
            refused.append(str(error))

    producer.submit(Message("blocking-back", b"x")).add_done_callback(close)
    wait_until(lambda: refused, "the callback came")
    assert "would deadlock" in refused[0]
    producer.close()
    assert threads() == []
