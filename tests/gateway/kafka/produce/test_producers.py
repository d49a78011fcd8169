from __future__ import annotations

import pytest
from tests.world import World

from rockgate.gateway.kafka.produce.producer_expiry import (
    LOOK_EVERY_MS,
    LOOK_SOON_MS,
    ProducerExpiry,
)
from rockgate.gateway.kafka.produce.producers import TOPIC, WINDOW, Producers
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header, stamp
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.errors import StoreCorrupt, StoreFull
from rockgate.store.state.fold import Change, Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk

LAST = (1 << 31) - 1


class Shop(World):
    """A store with the fold, and a way to produce as the handler does."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        super().__init__(disk=disk)

    def make_folds(self, journal: Journal, topics: Topics) -> list[Fold]:
        self.producers = Producers(journal, topics)
        return [self.producers]

    def open(self) -> None:
        super().open()
        self.sold = self.ensure("t")

    def killed(self) -> Shop:
        return Shop(self.disk.killed())

    def restarted(self) -> Shop:
        self.store.close()
        return Shop(self.disk.killed())

    def header(self, first: int, count: int = 1, epoch: int = 0, pid: int = 7) -> BatchHeader:
        return read_header(self._batch(first, count, epoch, pid))

    def produce(self, first: int, count: int = 1, epoch: int = 0, pid: int = 7) -> int:
        """Append unless it is a duplicate, and return the first offset."""
        body = self._batch(first, count, epoch, pid)
        header = read_header(body)
        known = self.producers.check(self.sold.id, 0, header)
        if known is not None:
            return known
        appended = self.store.appender.batch(
            self.store.queue(self.sold, 0),
            body,
            count=count,
            record_ms=1,
            stamp=lambda view, offset: stamp(view, offset, 1),
        )
        self.producers.record(
            self.sold.id,
            0,
            header,
            offset=appended.offset,
            position=appended.position,
            store_ms=appended.store_ms,
        )
        return appended.offset

    @staticmethod
    def _batch(first: int, count: int, epoch: int, pid: int) -> bytearray:
        records = [Record(n, 1, None, b"v") for n in range(count)]
        return build_batch(
            records, base_offset=0, producer_id=pid, producer_epoch=epoch, base_sequence=first
        )

    def refusal(self, first: int, epoch: int = 0) -> ErrorCode:
        with pytest.raises(RequestError) as refused:
            self.produce(first, epoch=epoch)
        return refused.value.code


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_no_one_knows_may_begin_anywhere() -> None:
    assert Shop().produce(41) == 0


def test_sequences_follow_each_other_and_a_gap_is_refused() -> None:
    shop = Shop()
    assert [shop.produce(0, 3), shop.produce(3), shop.produce(4)] == [0, 3, 4]
    assert shop.refusal(6) == OUT_OF_ORDER
    assert shop.refusal(2) == OUT_OF_ORDER


def test_the_last_five_batches_are_known_again_and_older_ones_are_not() -> None:
    shop = Shop()
    for first in range(WINDOW + 1):
        shop.produce(first)
    assert [shop.produce(first) for first in range(1, WINDOW + 1)] == list(range(1, WINDOW + 1))
    assert shop.refusal(0) == OUT_OF_ORDER


def test_sequences_start_again_at_zero_after_the_largest() -> None:
    shop = Shop()
    shop.produce(LAST - 1, 2)
    assert shop.produce(0) == 2
    other = Shop()
    other.produce(LAST, 3)
    assert other.header(LAST, 3).last_sequence == 1
    assert other.produce(2) == 3


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    shop = Shop()
    shop.produce(0, epoch=3)
    assert shop.refusal(1, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert shop.refusal(1, epoch=4) == OUT_OF_ORDER
    assert shop.produce(0, epoch=4) == 1


@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_what_a_producer_wrote_is_known_after_a_restart(how: str) -> None:
    shop = Shop()
    shop.produce(0, 2)
    shop.produce(2)
    again: Shop = getattr(shop, how)()
    assert again.produce(2) == 2
    assert again.refusal(9) == OUT_OF_ORDER
    assert again.produce(3) == 3


def test_no_producer_id_is_given_out_twice_whatever_happens_in_between() -> None:
    shop = Shop()
    first = [shop.producers.new_id() for _ in range(5)]
    shop = shop.killed()
    second = [shop.producers.new_id() for _ in range(5)]
    shop = shop.restarted()
    third = [shop.producers.new_id() for _ in range(2_500)]
    assert len({*first, *second, *third}) == 2_510


def test_a_deleted_topic_takes_its_producers_along() -> None:
    shop = Shop()
    shop.produce(0)
    shop.store.topics.delete([shop.sold])
    assert shop.producers.of(shop.sold.id, 0) == []
    assert list(shop.killed().producers.snapshot()) == list(shop.producers.snapshot())


def test_producers_that_wrote_nothing_for_long_are_forgotten_in_stretches() -> None:
    shop = Shop()
    expiry = ProducerExpiry(shop.producers, shop.clock, expiry_ms=3_600_000, count_max=1_000)
    shop.produce(5, pid=1)
    shop.clock.advance(3_000_000)
    shop.produce(5, pid=2)
    assert not expiry.step()
    shop.clock.advance(700_000)
    while expiry.step():
        pass
    assert [each.producer_id for each in shop.producers.of(shop.sold.id, 0)] == [2]
    assert shop.produce(0, pid=1) == 2
    shop.clock.advance(LOOK_EVERY_MS - 1)
    assert not expiry.step()


def test_of_too_many_producers_the_silent_ones_go_and_no_recent_one_does() -> None:
    shop = Shop()
    expiry = ProducerExpiry(shop.producers, shop.clock, expiry_ms=86_400_000, count_max=10)
    for pid in range(30):
        shop.produce(0, pid=pid)
        shop.clock.advance(60_000)
    for pid in range(100, 108):
        shop.produce(0, pid=pid)
    for _ in range(60):
        shop.clock.advance(LOOK_SOON_MS - 100)
        while expiry.step():
            pass
    left = {each.producer_id for each in shop.producers.of(shop.sold.id, 0)}
    assert left >= set(range(100, 108)) and len(left) <= 10


def test_the_time_to_be_remembered_is_given_back_when_there_is_room() -> None:
    shop = Shop()
    expiry = ProducerExpiry(shop.producers, shop.clock, expiry_ms=86_400_000, count_max=10)
    for pid in range(30):
        shop.produce(0, pid=pid)
    for _ in range(20):
        shop.clock.advance(LOOK_EVERY_MS)
        while expiry.step():
            pass
    assert len(shop.producers) == 0
    shop.produce(0, pid=1)
    for _ in range(24 * 60 - 40):
        shop.clock.advance(LOOK_EVERY_MS)
        while expiry.step():
            pass
    assert len(shop.producers) == 1


def test_replaying_what_is_in_the_state_changes_nothing() -> None:
    shop = Shop()
    for first in range(8):
        shop.produce(first)
    before = list(shop.producers.snapshot())
    for view, entry in shop.store.log.walk(0):
        if entry.is_batch:
            shop.producers.apply_batch(
                Change(
                    entry.position,
                    entry.store_ms,
                    entry.topic,
                    entry.queue_id,
                    entry.queue_offset,
                    entry.sys_flag,
                    b"",
                    view[entry.body_at : entry.body_at + entry.body_size],
                )
            )
    assert list(shop.producers.snapshot()) == before


@pytest.mark.parametrize("body", [b"", b"\1", b"\1" + bytes(9), b"\0" + bytes(8)])
def test_a_damaged_reservation_is_reported_by_its_position(body: bytes) -> None:
    change = Change(4096, 1, TOPIC, 0, -1, 0, b"", memoryview(body))
    with pytest.raises(StoreCorrupt) as refused:
        Shop().producers.apply(change)
    assert refused.value.position == 4096


def test_ids_are_given_out_only_once_their_block_is_in_the_log() -> None:
    shop = Shop()
    shop.store.appender.state_refusal = StoreFull("no room")
    for _ in range(3):
        with pytest.raises(StoreFull):
            shop.producers.new_id()
    shop.store.appender.state_refusal = None
    given = {shop.producers.new_id() for _ in range(5)}
    shop = shop.killed()
    assert given.isdisjoint(shop.producers.new_id() for _ in range(5))
