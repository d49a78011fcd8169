"""What a clock that is set, and a log that takes nothing for a while, do to transactions' time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.gateway.kafka.transactions.ledger import ID_EXPIRY_MS, Ledger

from rockgate.gateway.kafka.produce.producer_expiry import LOOK_EVERY_MS, ProducerExpiry
from rockgate.gateway.kafka.transactions import deadlines
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch, TransactionState
from rockgate.store.errors import StoreFull
from rockgate.store.write.append import Appended, Intake

DAY_MS = 86_400_000
TIMEOUT_MS = 60_000


def begun(ledger: Ledger, id_: str = "tx", *, timeout_ms: int = TIMEOUT_MS) -> ProducerIdAndEpoch:
    producer = ledger.init(id_, timeout_ms=timeout_ms).producer
    assert ledger.write(producer, 0, b"a", id_=id_) == 0
    return producer


def opened() -> Ledger:
    ledger = Ledger()
    ledger.topic()
    return ledger


def is_open(ledger: Ledger, id_: str = "tx") -> bool:
    transaction = ledger.folds.transactions.find(id_)
    assert transaction is not None
    return transaction.state is TransactionState.ONGOING


def pass_time(ledger: Ledger, milliseconds: int) -> None:
    ledger.clock.advance(milliseconds)
    ledger.deadlines.step()


def test_one_that_began_while_the_clock_was_a_day_ahead_is_aborted_in_time() -> None:
    ledger = opened()
    ledger.clock.step(DAY_MS)
    begun(ledger)
    ledger.clock.step(-DAY_MS)
    pass_time(ledger, TIMEOUT_MS - 1)
    assert is_open(ledger)
    pass_time(ledger, 1)
    assert not is_open(ledger)


def test_a_clock_that_is_set_ahead_aborts_nothing_before_its_time() -> None:
    ledger = opened()
    begun(ledger)
    ledger.clock.step(DAY_MS)
    pass_time(ledger, TIMEOUT_MS - 1)
    assert is_open(ledger)
    pass_time(ledger, 1)
    assert not is_open(ledger)


def test_while_the_logs_time_stands_still_the_next_ones_have_all_of_their_time() -> None:
    """After a day ahead the log's own time waits for the clock: all of them begin at one time."""
    ledger = opened()
    ledger.clock.step(DAY_MS)
    producer = begun(ledger)
    ledger.clock.step(-DAY_MS)
    for _ in range(5):
        pass_time(ledger, TIMEOUT_MS - 1)
        assert is_open(ledger)
        producer = ledger.end(producer, commit=True).producer
        assert ledger.write(producer, 0, b"next") == 0
    pass_time(ledger, TIMEOUT_MS)
    assert not is_open(ledger)


@pytest.mark.parametrize("set_by_ms", [-DAY_MS, 0, DAY_MS])
def test_after_a_restart_none_is_due_later_than_a_whole_timeout(set_by_ms: int) -> None:
    ledger = opened()
    begun(ledger)
    ledger.clock.advance(TIMEOUT_MS // 2)
    ledger.clock.step(set_by_ms)
    ledger.kill()
    if set_by_ms > 0:
        pass_time(ledger, 0)
        assert not is_open(ledger), "as far as the server can know its time is up"
        return
    left_ms = TIMEOUT_MS if set_by_ms else TIMEOUT_MS // 2
    pass_time(ledger, left_ms - 1)
    assert is_open(ledger)
    pass_time(ledger, 1)
    assert not is_open(ledger)


def test_one_that_began_with_the_clock_ahead_is_aborted_after_a_restart_too() -> None:
    ledger = opened()
    ledger.clock.step(DAY_MS)
    begun(ledger)
    ledger.clock.step(-DAY_MS)
    ledger.kill()
    pass_time(ledger, TIMEOUT_MS)
    assert not is_open(ledger)


class FullLog:
    """Stands in for `Appender.group` while the log takes nothing."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self._group = ledger.store.appender.group
        self.is_full = True
        self.refused_count = 0
        monkeypatch.setattr(ledger.store.appender, "group", self)

    def __call__(self, intakes: Sequence[Intake], **options: Any) -> list[Appended]:
        if self.is_full:
            self.refused_count += 1
            raise StoreFull("no room")
        return self._group(intakes, **options)


def test_an_abort_that_could_not_be_written_is_tried_again_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = opened()
    ids = [f"tx-{number}" for number in range(3 * deadlines.ABORTS_PER_STEP)]
    for id_ in ids:
        begun(ledger, id_)
    full = FullLog(ledger, monkeypatch)
    ledger.clock.advance(TIMEOUT_MS)
    while ledger.deadlines.step():
        pass
    assert full.refused_count == len(ids), "each was tried, and none at once again"
    full.is_full = False
    ledger.clock.advance(deadlines.RETRY_MS)
    while ledger.deadlines.step():
        pass
    assert not any(is_open(ledger, id_) for id_ in ids)


def test_a_day_ahead_for_a_moment_forgets_no_id_and_no_producer() -> None:
    ledger = opened()
    producer = begun(ledger)
    assert ledger.end(producer, commit=True).code == 0
    expiry = ProducerExpiry(ledger.folds.producers, ledger.clock, expiry_ms=DAY_MS, count_max=1_000)
    ledger.clock.advance(max(LOOK_EVERY_MS, deadlines.EXPIRY_EVERY_MS))
    ledger.clock.step(ID_EXPIRY_MS + DAY_MS)
    while ledger.deadlines.step() or expiry.step():
        pass
    ledger.clock.step(-ID_EXPIRY_MS - DAY_MS)
    assert ledger.folds.transactions.find("tx") is not None
    topic_id = ledger.store.topics.get("orders").id
    assert ledger.folds.producers.knows(topic_id, 0, producer.id)


def test_ids_that_come_again_and_again_are_watched_once_each() -> None:
    ledger = opened()
    producer = ledger.init(timeout_ms=TIMEOUT_MS).producer
    for number in range(100):
        assert ledger.write(producer, 0, b"%d" % number) == 0
        producer = ledger.end(producer, commit=True).producer
    assert len(ledger.deadlines._rings) == 1
    shorter = ledger.init(timeout_ms=1_000).producer
    assert ledger.write(shorter, 0, b"late") == 0
    pass_time(ledger, 1_000)
    assert not is_open(ledger), "a shorter timeout counts from the next one on"
