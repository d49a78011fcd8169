"""The blocking face against a real server: docs/sdk.md, "Without a loop"."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from tests.gateway.server import RunningServer

from rockgate.sdk import Closed, InvalidMessage, Message, Outcome, Received, Rollback, SendResult
from rockgate.sdk.blocking import BlockingProducer


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
    with producer, pytest.raises(InvalidMessage, match="the body is empty"):
        producer.send(Message("t", b""))
    with pytest.raises(Closed):
        producer.send(Message("t", b"x"))
    with pytest.raises(Closed, match="opened once"):
        producer.open()
    assert threads() == []
