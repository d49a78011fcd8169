"""A timed-out transaction: its own producer continues, and no other is let in by that.

What Apache Kafka 4.3.1 answers to the same requests in the same states.
"""

from __future__ import annotations

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger, Outcome

from rockgate.gateway.kafka.transactions import coordinator
from rockgate.gateway.kafka.transactions.transaction import (
    EPOCH_MAX,
    ProducerIdAndEpoch,
    TransactionState,
)
from rockgate.protocol.kafka.errors import ErrorCode

TIMEOUT_MS = 1000


def timed_out(*, version: int = 12, partitions: int = 1) -> tuple[Ledger, ProducerIdAndEpoch]:
    """A ledger whose transaction was aborted because its time was up, and its producer."""
    ledger = Ledger()
    ledger.topic(partitions=partitions)
    producer = ledger.init(timeout_ms=TIMEOUT_MS).producer
    for partition in range(partitions):
        if version < 12:
            assert ledger.add(producer, partition) == [0]
        assert ledger.write(producer, 0, b"late", partition=partition, version=version) == 0
    ledger.clock.advance(TIMEOUT_MS)
    ledger.deadlines.step()
    return ledger, producer


def raised(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(producer.id, producer.epoch + 1)


def state_of(ledger: Ledger) -> TransactionState:
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    return transaction.state


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("is_killed", [False, True])
def test_its_producer_aborts_and_continues_with_the_next_epoch(
    version: int, is_killed: bool
) -> None:
    ledger, producer = timed_out(version=version)
    if is_killed:
        ledger.kill()
    for _ in range(2):
        assert ledger.end(producer, commit=False) == Outcome(0, raised(producer))
    assert ledger.bounds() == (2, 2), "one marker was written"
    assert ledger.write(raised(producer), 0, b"next") == 0
    assert ledger.end(raised(producer), commit=True).code == 0
    assert ledger.read() == [b"next"]


def test_its_producer_cannot_commit_it_and_may_abort_then() -> None:
    ledger, producer = timed_out()
    assert ledger.end(producer, commit=True).code == ErrorCode.INVALID_TXN_STATE
    assert ledger.end(producer, commit=False) == Outcome(0, raised(producer))


@pytest.mark.parametrize("version", [3, 5])
def test_its_producer_begins_anew_with_the_id_and_epoch_it_has(version: int) -> None:
    ledger, producer = timed_out()
    for _ in range(2):
        again = ledger.init(has=producer, version=version)
        assert again == Outcome(0, raised(producer))
        assert state_of(ledger) is TransactionState.EMPTY
    assert ledger.end(producer, commit=False).code == ErrorCode.PRODUCER_FENCED
    assert ledger.write(raised(producer), 0, b"next") == 0


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("is_commit", [False, True])
def test_before_version_2_its_producer_is_fenced(version: int, is_commit: bool) -> None:
    ledger, producer = timed_out(version=11)
    outcome = ledger.end(producer, commit=is_commit, version=version)
    assert outcome.code == ErrorCode.PRODUCER_FENCED


def test_all_else_of_its_producer_is_refused_until_it_has_aborted() -> None:
    ledger, producer = timed_out()
    assert ledger.write(producer, 1, b"more") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert ledger.add(producer, 0) == [ErrorCode.PRODUCER_FENCED]
    assert ledger.add_group(producer) == ErrorCode.PRODUCER_FENCED
    assert ledger.commit_offset(producer, 3) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_once_another_instance_took_over_its_producer_is_fenced() -> None:
    ledger, producer = timed_out()
    taken = ledger.init()
    assert taken == Outcome(0, ProducerIdAndEpoch(producer.id, producer.epoch + 2))
    assert ledger.end(producer, commit=False).code == ErrorCode.PRODUCER_FENCED
    assert ledger.init(has=producer).code == ErrorCode.PRODUCER_FENCED
    assert ledger.init(has=raised(producer)).code == ErrorCode.PRODUCER_FENCED


def test_a_takeover_of_an_open_transaction_fences_in_every_version() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init().producer
    assert ledger.write(producer, 0, b"a") == 0
    assert ledger.init().code == 0
    for version in (2, 4, 5):
        for commit in (False, True):
            outcome = ledger.end(producer, commit=commit, version=version)
            assert outcome.code == ErrorCode.PRODUCER_FENCED
    assert ledger.init(has=producer).code == ErrorCode.PRODUCER_FENCED


def test_a_large_one_is_aborted_by_and_by_and_its_producer_waits_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 2)
    ledger, producer = timed_out(partitions=5)
    assert state_of(ledger) is TransactionState.PREPARE_ABORT
    assert ledger.end(producer, commit=False).code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert ledger.end(producer, commit=True).code == ErrorCode.INVALID_TXN_STATE
    while ledger.coordinator.step():
        pass
    assert ledger.end(producer, commit=False) == Outcome(0, raised(producer))


def test_a_producer_that_begins_anew_over_a_large_one_of_its_own_is_let_in_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 2)
    ledger = Ledger()
    ledger.topic(partitions=5)
    producer = ledger.init().producer
    for partition in range(5):
        assert ledger.write(producer, 0, b"a", partition=partition) == 0
    assert ledger.init(has=producer).code == ErrorCode.CONCURRENT_TRANSACTIONS
    while ledger.coordinator.step():
        pass
    assert ledger.init(has=producer) == Outcome(0, raised(producer))


def test_after_the_last_epoch_its_producer_continues_with_a_new_id() -> None:
    ledger = Ledger()
    ledger.topic()
    first = ledger.init(timeout_ms=TIMEOUT_MS).producer
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    last = transaction.producer = ProducerIdAndEpoch(first.id, EPOCH_MAX)
    assert ledger.write(last, 0, b"late") == 0
    ledger.clock.advance(TIMEOUT_MS)
    ledger.deadlines.step()
    ended = ledger.end(last, commit=False)
    assert ended.code == 0
    assert ended.producer.id != first.id
    assert ledger.write(ended.producer, 0, b"next") == 0
    assert ledger.end(ended.producer, commit=True).code == 0
    assert ledger.read() == [b"next"]


def test_a_begin_said_again_takes_its_timeout_and_ends_no_transaction_of_the_one_after_it() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init(timeout_ms=50_000).producer
    assert ledger.init(has=producer, timeout_ms=40_000).producer == raised(producer)
    assert ledger.init(has=producer, timeout_ms=30_000).producer == raised(producer)
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    assert transaction.timeout_ms == 30_000
    assert ledger.write(raised(producer), 0, b"a") == 0
    # Two that share an epoch would write into each other's transactions.
    assert ledger.init(has=producer).code == ErrorCode.PRODUCER_FENCED
    assert ledger.end(raised(producer), commit=True).code == 0
    assert ledger.read() == [b"a"]


def test_an_ended_transaction_is_empty_after_a_begin_that_names_the_epoch_before() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init().producer
    assert ledger.write(producer, 0, b"a") == 0
    assert ledger.end(producer, commit=True).producer == raised(producer)
    assert ledger.init(has=producer) == Outcome(0, raised(producer))
    assert state_of(ledger) is TransactionState.EMPTY
