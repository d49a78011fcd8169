"""A delayed message that is delivered before its time: once, and only it."""

from __future__ import annotations

import pytest
from tests.store.reading import entries
from tests.store.waiting_store import WaitingStore

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import get_property, properties_of
from rockgate.store.delay.early_delivery import Arrival
from rockgate.store.errors import DiskFailed, StoreBusy, StoreFull, UnknownTopic
from rockgate.store.log.commitlog import Draft

HOUR_MS = 3_600_000


@pytest.fixture
def world() -> WaitingStore:
    return WaitingStore()


def early(world: WaitingStore, offset: int) -> Arrival | None:
    queue = world.queue("later")
    unit = queue.find(offset)
    assert unit is not None
    return world.store.early_deliveries.deliver(
        queue, world.store.reader.entry(queue, unit), offset
    )


def later(world: WaitingStore, body: bytes) -> int:
    offset = world.schedule(body, world.clock.now_ms() + HOUR_MS)
    world.store.flush()
    return offset


@pytest.mark.row("Y-02")
@pytest.mark.parametrize("how", ["reopen", "kill", "settle"])
def test_it_is_delivered_now_and_never_again(world: WaitingStore, how: str) -> None:
    offsets = [later(world, b"%d" % number) for number in range(3)]
    assert early(world, offsets[1]) == Arrival("target", 0, 0)
    assert world.delivered() == [b"1"]
    assert early(world, offsets[1]) is None
    getattr(world, how)()
    assert world.store.delay.waiting_count == 2
    world.pass_time(2 * HOUR_MS)
    assert world.delivered() == [b"1", b"0", b"2"]
    assert world.store.delay.units.used_count == 0


def test_the_delivery_names_its_origin(world: WaitingStore) -> None:
    offset = later(world, b"one")
    early(world, offset)
    world.store.flush()
    [found] = entries(world.store, world.queue("target"), 0, 1 << 20)
    properties = properties_of(found.entry, envelope.read(found.entry))
    origin = f"{world.queue('later').topic_id.hex()}:0:{offset}".encode()
    assert get_property(properties, b"__ORIGIN") == origin


def test_of_a_batch_only_the_record_that_was_asked_for_is_delivered(world: WaitingStore) -> None:
    due_ms = world.clock.now_ms() + HOUR_MS
    draft = Draft(b"", 0, 0, b"a,b,c", batch_count=3)
    world.store.deliveries.append(world.queue("later"), draft, [(0, due_ms), (2, due_ms)])
    world.store.flush()
    assert early(world, 2) == Arrival("target", 0, 0)
    assert early(world, 1) is None, "it is not delayed"
    assert world.delivered() == [b"c"]
    world.pass_time(HOUR_MS)
    assert world.delivered() == [b"c", b"a"]


def test_what_was_cancelled_or_delivered_is_not_delivered_early(world: WaitingStore) -> None:
    cancelled, due = later(world, b"one"), world.schedule(b"two", world.clock.now_ms())
    assert world.recall(cancelled)
    world.store.flush()
    world.settle()
    assert early(world, cancelled) is None
    assert early(world, due) is None
    assert world.delivered() == [b"two"]


def test_what_was_delivered_early_cannot_be_cancelled(world: WaitingStore) -> None:
    offset = later(world, b"one")
    early(world, offset)
    assert not world.recall(offset)


def test_of_an_early_delivery_and_one_under_way_one_happens(world: WaitingStore) -> None:
    """What was picked for delivery, and waits for the disk, can still be delivered early."""
    deliveries = world.store.deliveries
    offset = world.schedule(b"one", world.clock.now_ms())
    world.store.flush()
    deliveries._fetch = lambda: True  # type: ignore[method-assign]  # its entry is cold
    deliveries.step()
    deliveries.step()
    assert early(world, offset) is not None
    del deliveries._fetch
    world.settle()
    assert world.delivered() == [b"one"]
    assert world.store.delay.units.used_count == 0


@pytest.mark.parametrize("how", ["settle", "kill"])
def test_what_cannot_be_appended_stays_delayed(world: WaitingStore, how: str) -> None:
    offset = later(world, b"one")
    world.store.appender.refusal = StoreFull("the disk is full")
    with pytest.raises(StoreFull):
        early(world, offset)
    world.store.appender.refusal = None
    getattr(world, how)()
    assert world.store.delay.waiting_count == 1
    assert world.delivered() == []
    world.pass_time(HOUR_MS)
    assert world.delivered() == [b"one"]


def test_after_a_disk_failed_nothing_is_delivered_early(world: WaitingStore) -> None:
    offset = later(world, b"one")
    world.store.appender.fail(DiskFailed("log", OSError("gone")))
    with pytest.raises(DiskFailed):
        early(world, offset)
    assert world.store.delay.waiting_count == 1


def test_what_the_gateway_puts_off_stays_delayed(world: WaitingStore) -> None:
    offset = later(world, b"one")
    world.refuses = True
    with pytest.raises(StoreBusy):
        early(world, offset)
    assert world.store.delay.waiting_count == 1


def test_what_is_for_a_deleted_topic_is_refused_and_dropped_in_time(world: WaitingStore) -> None:
    offset = later(world, b"one")
    world.store.topics.delete([world.store.topics.get("target")])
    with pytest.raises(UnknownTopic):
        early(world, offset)
    world.pass_time(HOUR_MS)
    assert world.store.deliveries.dropped_count == 1


def test_a_clock_that_is_a_day_off_does_not_hold_it_up(world: WaitingStore) -> None:
    offset = later(world, b"one")
    world.clock.step(-24 * HOUR_MS)
    assert early(world, offset) is not None
    assert world.delivered() == [b"one"]
