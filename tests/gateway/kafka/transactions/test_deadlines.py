"""Transactions that take too long, unused ids, and completions that a stop interrupted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.gateway.kafka.transactions.ledger import ID_EXPIRY_MS, Ledger

from rockgate.gateway.kafka.transactions import coordinator
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.kafka.transactions.transaction import Partition, TransactionState
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.control import Marker
from rockgate.store.errors import StoreFull
from rockgate.store.write.append import Intake


def test_a_transaction_that_is_late_is_aborted_and_its_producer_refused() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init(timeout_ms=1000).producer
    ledger.write(producer, 0, b"a")
    ledger.clock.advance(999)
    ledger.deadlines.step()
    assert ledger.bounds() == (0, 1)
    ledger.clock.advance(1)
    ledger.deadlines.step()
    assert ledger.bounds() == (2, 2)
    assert ledger.read() == []
    assert ledger.end(producer, commit=True).code == ErrorCode.INVALID_TXN_STATE
    assert ledger.write(producer, 1, b"b") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert ledger.init().code == 0


def test_a_transaction_that_ended_in_time_is_left_alone_and_so_is_the_next() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init(timeout_ms=1000).producer
    ledger.write(producer, 0, b"a")
    producer = ledger.end(producer, commit=True).producer
    ledger.clock.advance(900)
    ledger.write(producer, 0, b"b")
    ledger.clock.advance(200)
    ledger.deadlines.step()
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.read() == [b"a", b"b"]


def test_time_continues_over_a_restart() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init(timeout_ms=1000).producer
    ledger.write(producer, 0, b"a")
    ledger.kill()
    ledger.clock.advance(1000)
    ledger.deadlines.step()
    assert ledger.bounds() == (2, 2)


def test_unused_ids_are_forgotten_and_open_ones_are_not() -> None:
    ledger = Ledger()
    ledger.topic()
    ledger.init("unused")
    busy = ledger.init("busy", timeout_ms=900_000).producer
    ledger.clock.advance(ID_EXPIRY_MS - 1000)
    ledger.write(busy, 0, b"a", id_="busy")
    ledger.clock.advance(60_000)
    while ledger.deadlines.step():
        pass
    assert ledger.folds.transactions.find("unused") is None
    assert ledger.folds.transactions.find("busy") is not None


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("is_commit", [False, True])
def test_a_large_transaction_is_ended_by_and_by_and_over_a_kill(
    monkeypatch: pytest.MonkeyPatch, steps: int, is_commit: bool
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 2)
    ledger = Ledger()
    ledger.topic(partitions=7)
    producer = ledger.init().producer
    for partition in range(7):
        ledger.write(producer, 0, b"%d" % partition, partition=partition)
    ledger.commit_offset(producer, 5)
    assert ledger.end(producer, commit=is_commit).code == 0
    for _ in range(steps):
        ledger.coordinator.step()
    ledger.kill()
    while ledger.coordinator.step():
        pass
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    assert transaction.state is (
        TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    )
    for partition in range(7):
        assert ledger.bounds(partition) == (2, 2), "each partition has one marker"
        assert ledger.read(partition) == ([b"%d" % partition] if is_commit else [])
    assert ledger.committed_offset() == (0, 5 if is_commit else -1)


def test_a_large_transaction_that_cannot_be_ended_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 2)
    ledger = Ledger()
    ledger.topic(partitions=10)
    producers = {id_: ledger.init(id_).producer for id_ in ("bad", "good")}
    for id_, first in (("bad", 0), ("good", 5)):
        for partition in range(first, first + 5):
            ledger.write(producers[id_], 0, b"a", id_=id_, partition=partition)
        assert ledger.end(producers[id_], commit=True, id_=id_).code == 0
    real = Markers.append

    def append(
        markers: Markers,
        marker: Marker,
        partitions: Sequence[Partition],
        states: Sequence[Intake],
    ) -> None:
        if marker.producer_id == producers["bad"].id:
            raise StoreFull("no space left on device")
        real(markers, marker, partitions, states)

    monkeypatch.setattr(Markers, "append", append)
    failures = 0
    for _ in range(20):
        try:
            ledger.coordinator.step()
        except StoreFull:
            failures += 1
    good, bad = (ledger.folds.transactions.find(id_) for id_ in ("good", "bad"))
    assert good is not None and good.state is TransactionState.COMPLETE_COMMIT
    assert bad is not None and bad.state is TransactionState.PREPARE_COMMIT and failures > 1
    monkeypatch.setattr(Markers, "append", real)
    while ledger.coordinator.step():
        pass
    assert [each.state for each in (good, bad)] == [TransactionState.COMPLETE_COMMIT] * 2
