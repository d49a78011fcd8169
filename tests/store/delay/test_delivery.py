from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.store.reading import entries
from tests.store.waiting_store import CONFIG, WaitingStore

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED, MOVED, body_of, get_property, properties_of
from rockgate.store.delay.changes import due_after
from rockgate.store.delay.delivery import COUNT_MAX, RETRY_MS
from rockgate.store.delay.units import FILE_UNITS, UNIT
from rockgate.store.errors import DiskFailed, StoreCorrupt, StoreFull, UnknownTopic
from rockgate.store.log.commitlog import Draft
from rockgate.store.read.slices import Slice
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Intake

HOUR_MS = 3_600_000
DAY_MS = 86_400_000
NOISE = b"x" * 600


@pytest.fixture
def world() -> WaitingStore:
    return WaitingStore()


@pytest.mark.row("Y-03")
def test_a_message_is_delivered_when_its_time_has_come_and_not_before(world: WaitingStore) -> None:
    world.schedule(b"one", world.clock.now_ms() + 5_000)
    world.pass_time(4_999)
    assert world.delivered() == []
    world.pass_time(1)
    assert world.delivered() == [b"one"]
    world.pass_time(DAY_MS)
    assert world.delivered() == [b"one"]
    assert world.store.delay.waiting_count == world.store.delay.units.used_count == 0


def test_a_time_that_is_past_is_due_at_once(world: WaitingStore) -> None:
    world.schedule(b"one", 0)
    world.settle()
    assert world.delivered() == [b"one"]


@pytest.mark.row("Y-01")
def test_messages_of_one_level_leave_in_the_order_in_which_they_came(world: WaitingStore) -> None:
    bodies = [b"%d" % number for number in range(3 * COUNT_MAX)]
    for body in bodies:
        world.schedule(body, world.clock.now_ms() + 5_000)
    world.pass_time(5_000)
    assert world.delivered() == bodies


@pytest.mark.row("Y-04")
def test_a_delivery_names_its_origin(world: WaitingStore) -> None:
    world.schedule(b"zero", world.clock.now_ms() + DAY_MS)
    world.schedule(b"one", world.clock.now_ms())
    world.settle()
    world.store.flush()
    [found] = entries(world.store, world.queue("target"), 0, 1 << 20)
    entry = envelope.read(found.entry)
    origin = get_property(properties_of(found.entry, entry), b"__ORIGIN")
    assert origin == b"%b:0:1" % world.queue("later").topic_id.hex().encode()


def test_what_waits_is_marked_in_the_log(world: WaitingStore) -> None:
    world.schedule(b"one", world.clock.now_ms() + DAY_MS)
    world.store.flush()
    unit = world.queue("later").find(0)
    assert unit is not None
    found = world.store.reader.entry(world.queue("later"), unit)
    assert envelope.read(found.entry).sys_flag & DELAYED


def test_of_a_batch_some_records_wait_each_for_its_time(world: WaitingStore) -> None:
    now_ms = world.clock.now_ms()
    draft = Draft(b"", 0, 0, b"a,b,c,d", batch_count=4)
    appended = world.store.deliveries.append(
        world.queue("later"), draft, [(3, now_ms + 1_000), (1, now_ms + 2_000)]
    )
    assert appended.offset == 0
    world.pass_time(1_500)
    assert world.delivered() == [b"d"]
    assert world.recall(1)
    world.pass_time(1_500)
    assert world.delivered() == [b"d"]


@pytest.mark.row("S-04")
@pytest.mark.row("Y-02")
@pytest.mark.parametrize("how", ["reopen", "kill"])
def test_a_restart_neither_forgets_nor_repeats(world: WaitingStore, how: str) -> None:
    now_ms = world.clock.now_ms()
    for number in range(10):
        world.schedule(b"%d" % number, now_ms + number * 1_000)
    world.pass_time(3_500)
    getattr(world, how)()
    assert world.store.delay.waiting_count == 6
    world.pass_time(DAY_MS)
    getattr(world, how)()
    world.pass_time(DAY_MS)
    assert world.delivered() == [b"%d" % number for number in range(10)]


# Recalling


def test_what_was_recalled_is_never_delivered(world: WaitingStore) -> None:
    offset = world.schedule(b"one", world.clock.now_ms() + 1_000)
    assert world.recall(offset)
    assert not world.recall(offset)
    world.kill()
    world.pass_time(DAY_MS)
    assert world.delivered() == []


def test_what_was_delivered_cannot_be_recalled(world: WaitingStore) -> None:
    offset = world.schedule(b"one", world.clock.now_ms())
    world.settle()
    assert not world.recall(offset)
    assert world.delivered() == [b"one"]


def test_of_a_recall_and_a_delivery_under_way_one_wins(world: WaitingStore) -> None:
    """What was picked for delivery, and waits for the disk, can still be recalled."""
    deliveries = world.store.deliveries
    offset = world.schedule(b"one", world.clock.now_ms())
    deliveries._fetch = lambda: True  # type: ignore[method-assign]  # its entry is cold
    deliveries.step()
    deliveries.step()
    assert world.recall(offset)
    del deliveries._fetch
    world.settle()
    assert world.delivered() == []
    assert world.store.delay.units.used_count == 0


# Failing


@pytest.mark.row("Y-04")
def test_a_delivery_that_is_refused_is_tried_again(world: WaitingStore) -> None:
    world.schedule(b"one", world.clock.now_ms())
    world.refuses = True
    world.settle()
    assert world.store.deliveries.put_off_count == 1
    world.refuses = False
    world.pass_time(RETRY_MS - 2_000)
    assert world.delivered() == []
    world.pass_time(2_000)
    assert world.delivered() == [b"one"]


def test_a_full_disk_puts_deliveries_off_and_loses_none(world: WaitingStore) -> None:
    world.schedule(b"one", world.clock.now_ms())
    world.store.appender.refusal = StoreFull("the disk is full")
    world.settle()
    world.store.appender.refusal = None
    world.pass_time(RETRY_MS)
    assert world.delivered() == [b"one"]


def test_what_cannot_be_dropped_for_want_of_room_is_put_off_and_holds_up_no_other(
    world: WaitingStore,
) -> None:
    def redeliver(found: Slice, offset: int) -> Intake | None:
        if offset % 2:
            raise UnknownTopic("gone")
        return world.redeliver(found, offset)

    world.store.deliveries.redeliver = redeliver
    for body in (b"one", b"gone", b"two", b"gone too"):
        world.schedule(body, world.clock.now_ms())
    world.store.appender.state_refusal = StoreFull("the disk is full")
    world.settle()
    world.store.appender.state_refusal = None
    assert world.delivered() == [b"one", b"two"]
    assert world.store.deliveries.dropped_count == 0
    assert world.store.delay.waiting_count == 2
    world.pass_time(RETRY_MS)
    assert world.store.deliveries.dropped_count == 2
    assert world.store.delay.waiting_count == 0


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.endswith("delay.delivery")]


def test_a_full_disk_is_reported_once_and_so_is_that_there_is_room_again(
    world: WaitingStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(3 * COUNT_MAX):
        world.schedule(b"%d" % number, world.clock.now_ms() + 1_000)
    world.store.appender.refusal = StoreFull("the disk is full")
    for _ in range(20):
        world.pass_time(RETRY_MS)
    assert lines(caplog) == ["deliveries deferred reason=the disk is full"]
    assert world.store.deliveries.put_off_count >= 20 * 3 * COUNT_MAX
    world.store.appender.refusal = None
    world.pass_time(RETRY_MS)
    assert len(world.delivered()) == 3 * COUNT_MAX
    assert lines(caplog)[1:] == ["deliveries resumed"]


def test_after_a_disk_failed_deliveries_say_nothing_however_often_they_are_tried(
    world: WaitingStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.schedule(b"one", world.clock.now_ms() + 1_000)
    world.store.appender.fail(DiskFailed("log", OSError("gone")))
    for _ in range(20):
        world.pass_time(RETRY_MS)
    assert world.store.deliveries.put_off_count >= 20
    assert lines(caplog) == []


def test_an_item_that_cannot_be_read_is_reported_once_and_tried_forever(
    world: WaitingStore, caplog: pytest.LogCaptureFixture
) -> None:
    def redeliver(found: Slice, offset: int) -> Intake | None:
        raise StoreCorrupt("log", 5, "bad")

    world.store.deliveries.redeliver = redeliver
    for body in (b"one", b"two"):
        world.schedule(body, world.clock.now_ms() + 1_000)
    for _ in range(20):
        world.pass_time(RETRY_MS)
    assert world.store.deliveries.put_off_count >= 40
    assert [line.split(" reason")[0] for line in lines(caplog)] == [
        "cannot deliver delayed message 0:0",
        "cannot deliver delayed message 0:1",
    ]
    world.store.deliveries.redeliver = world.redeliver
    world.pass_time(RETRY_MS)
    assert world.delivered() == [b"one", b"two"]


def test_without_room_for_its_time_nothing_is_appended(world: WaitingStore) -> None:
    end = world.store.log.end
    world.disk.capacity = world.disk.used
    with pytest.raises(StoreFull):
        world.schedule(b"one", world.clock.now_ms())
    assert (world.store.log.end, world.queue("later").next_offset) == (end, 0)


@pytest.mark.row("Y-05")
def test_an_item_whose_entry_is_gone_is_lost_once_and_said_so(
    world: WaitingStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schedule(b"one", world.clock.now_ms() + 1_000)
    world.schedule(b"two", world.clock.now_ms() + 2_000)

    class NoQueues:
        def find(self, topic_id: bytes, queue_id: int) -> None:
            return None

    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(world.store.deliveries, "_queues", NoQueues())
        world.pass_time(1_000)
    assert (world.store.delay.waiting_count, len(caplog.records)) == (1, 1)
    world.kill()
    world.pass_time(1_000)
    assert world.delivered() == [b"two"], "it goes on with what is there"
    assert (world.store.delay.waiting_count, len(caplog.records)) == (0, 1)


def test_a_deleted_topic_takes_what_waits_in_it_along(world: WaitingStore) -> None:
    world.schedule(b"one", world.clock.now_ms() + 1_000)
    world.store.topics.delete([world.store.topics.get("later")])
    assert world.store.delay.waiting_count == 0
    world.pass_time(1_000)
    assert (world.delivered(), world.store.delay.units.used_count) == ([], 0)
    world.kill()
    assert world.store.delay.waiting_count == 0


@pytest.mark.row("Y-04")
def test_what_is_for_a_topic_that_is_gone_is_dropped_once_counted_and_said(
    world: WaitingStore, caplog: pytest.LogCaptureFixture
) -> None:
    now_ms = world.clock.now_ms()
    for number in range(5):
        world.schedule(b"%d" % number, now_ms + 1_000 + number // 4)
    world.schedule(b"later", now_ms + 5_000)
    world.store.topics.delete([world.store.topics.get("target")])
    with caplog.at_level(logging.WARNING):
        world.pass_time(1_000)
        world.pass_time(1)
    assert [record.getMessage() for record in caplog.records] == [
        "dropped delayed messages of a deleted topic topic=target count=4 dropped=4",
        "dropped delayed messages of a deleted topic topic=target count=1 dropped=5",
    ]
    assert world.store.delay.waiting_count == world.store.delay.units.used_count == 1
    world.kill()
    assert world.store.delay.waiting_count == 1
    world.pass_time(5_000)
    assert world.delivered() == [b"later"], "the topic is there again"


# Retention and the clock


@pytest.mark.row("Y-05")
def test_what_waits_outlives_retention(world: WaitingStore) -> None:
    world.schedule(b"patient", world.clock.now_ms() + 30 * DAY_MS)
    for _ in range(40):
        for _ in range(10):
            world.store.appender.message(world.queue("later"), Draft(b"", 0, 0, b"x" * 500))
        world.pass_time(3_600_000)
    unit = world.queue("later").find(0)
    assert unit is not None and world.store.log.start > 0
    found = world.store.reader.entry(world.queue("later"), unit)
    assert envelope.read(found.entry).sys_flag & MOVED
    assert world.queue("later").log_start > 0
    world.kill()
    world.pass_time(30 * DAY_MS)
    assert world.delivered() == [b"patient"]


class Month:
    """A month with an hour's retention on a disk that is too small for what is written to it.

    `patient` waits for all of it; meanwhile `kept`, which never expires, fills the disk.
    """

    def __init__(self, *, forced: bool) -> None:
        config = replace(
            CONFIG, retention_ms=HOUR_MS, disk_used_percent_max=98, disk_forced_cleanup=forced
        )
        # Most of it is the one file of units; the limit leaves room for some forty segments.
        capacity = FILE_UNITS * UNIT.size + 60 * CONFIG.segment_bytes
        self.world = WaitingStore(MemoryDisk(capacity=capacity), config=config)
        topics = self.world.store.topics
        topics.create(NewTopic(name="kept", queue_count=1, config={"retention.ms": "-1"}))
        self.due_ms = self.world.clock.now_ms() + 30 * DAY_MS
        self.world.schedule(b"patient", self.due_ms)
        self.refused_count = 0

    def pass_hours(self, count: int) -> None:
        store = self.world.store
        for _ in range(count):
            for name in ("later", "kept"):
                try:
                    for _ in range(3):
                        store.appender.message(self.world.queue(name), Draft(b"", 0, 0, NOISE))
                except StoreFull:
                    self.refused_count += 1
            self.world.pass_time(HOUR_MS // 2)
            self.world.pass_time(HOUR_MS // 2)


def test_a_month_s_delay_outlives_retention_and_the_disk_s_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Beyond the limit the oldest segments are deleted before they expire;

    delayed messages stay.
    """
    month = Month(forced=True)
    month.pass_hours(30 * 24 - 1)
    assert caplog.text.count("Rejecting writes") > 5
    assert month.world.queue("kept").log_start > 0, "what had not expired went"
    assert month.world.delivered() == []
    month.world.kill()
    month.world.pass_time(HOUR_MS - 1)
    assert month.world.delivered() == []
    month.world.pass_time(1)
    assert month.world.delivered() == [b"patient"]
    month.world.pass_time(DAY_MS)
    assert month.world.queue("target").next_offset == 1, "it came once; by now it has expired"


def test_a_month_s_delay_that_ends_on_a_full_disk_comes_when_there_is_room() -> None:
    month = Month(forced=False)
    month.pass_hours(30 * 24)
    assert month.refused_count > 0 and month.world.store.retention.disk.is_over
    assert month.world.clock.now_ms() >= month.due_ms
    assert month.world.delivered() == []
    assert month.world.store.deliveries.put_off_count > 0
    month.world.kill()
    month.world.disk.capacity *= 2
    month.world.pass_time(RETRY_MS)
    month.world.pass_time(RETRY_MS)
    assert month.world.delivered() == [b"patient"]


@pytest.mark.row("U-12")
@pytest.mark.row("Y-03")
@pytest.mark.parametrize("step", [DAY_MS, -DAY_MS])
def test_a_step_of_the_clock_neither_hurries_a_delay_nor_holds_it_up(
    world: WaitingStore, step: int
) -> None:
    world.schedule(b"one", due_after(world.store.deliveries.now_ms(), 10_000))
    world.clock.step(step)
    world.schedule(b"two", due_after(world.store.deliveries.now_ms(), 20_000))
    world.pass_time(9_999)
    assert world.delivered() == []
    world.pass_time(1)
    assert world.delivered() == [b"one"]
    world.pass_time(10_000)
    assert world.delivered() == [b"one", b"two"]


@pytest.mark.parametrize("step", [DAY_MS, -DAY_MS])
def test_what_is_put_off_comes_again_after_ten_seconds_though_the_clock_was_set(
    world: WaitingStore, step: int
) -> None:
    world.refuses = True
    world.schedule(b"day", world.clock.now_ms())
    world.schedule(b"delay", due_after(world.store.deliveries.now_ms(), 0))
    world.clock.step(step)
    world.settle()
    world.clock.step(-step)
    world.refuses = False
    world.pass_time(RETRY_MS)
    assert sorted(world.delivered()) == [b"day", b"delay"]


def test_many_that_are_held_by_a_clock_that_was_set_back_hold_up_no_delay(
    world: WaitingStore,
) -> None:
    for number in range(3 * COUNT_MAX):
        world.schedule(b"day %d" % number, world.clock.now_ms() + 1_000)
    world.settle()
    world.clock.step(-DAY_MS)
    world.schedule(b"delay", due_after(world.store.deliveries.now_ms(), 2_000))
    world.pass_time(2_000)
    assert world.delivered() == [b"delay"]
    assert not world.store.deliveries.step()
    assert world.store.deliveries.wait_ms() > 0
    assert world.store.deliveries.put_off_count == 0
    world.pass_time(DAY_MS)
    assert len(world.delivered()) == 1 + 3 * COUNT_MAX


def test_the_store_says_when_to_come_again(world: WaitingStore) -> None:
    assert world.store.delay.next_due_ms is None
    due_ms = world.clock.now_ms() + 90_000
    world.schedule(b"one", due_ms)
    looks = 0
    while (next_ms := world.store.delay.next_due_ms) is not None:
        assert next_ms <= due_ms
        world.clock.advance(max(1, next_ms - world.clock.now_ms()))
        world.settle()
        looks += 1
    assert world.delivered() == [b"one"]
    assert looks < 150


class CommaRecords:
    """Batches are words with commas between them; `bad` ones cannot be read."""

    def __init__(self, world: WaitingStore, bad: frozenset[int] = frozenset()) -> None:
        self.world = world
        self.bad = bad
        self.runs: list[list[int]] = []

    def prepare(self, wanted: Sequence[tuple[Slice, Sequence[int]]]) -> None:
        return None

    def redeliver(self, run: Sequence[tuple[Slice, int]]) -> tuple[Intake, int]:
        offsets = [offset for _, offset in run[:2]]
        if self.bad & set(offsets):
            raise StoreCorrupt("a batch", 0, "it is bad")
        self.runs.append(offsets)
        words = [
            bytes(body_of(found.entry)).split(b",")[offset - found.unit.base]
            for found, offset in run[:2]
        ]
        draft = Draft(b"", 0, 0, b",".join(words), batch_count=len(words))
        return Intake(self.world.queue("target"), draft), len(words)


def scheduled_batch(world: WaitingStore, count: int) -> None:
    body = b",".join(b"%d" % number for number in range(count))
    due_ms = world.store.deliveries.now_ms() + 1_000
    world.store.deliveries.append(
        world.queue("later"),
        Draft(b"", 0, 0, body, batch_count=count),
        [(index, due_ms) for index in range(count)],
    )


def test_records_that_are_due_together_share_an_entry_that_names_them_all() -> None:
    world = WaitingStore()
    records = world.store.deliveries.records = CommaRecords(world)
    scheduled_batch(world, 5)
    world.pass_time(1_000)
    assert world.delivered() == [b"0,1", b"2,3", b"4"]
    assert records.runs == [[0, 1], [2, 3], [4]]
    [found, *_] = entries(world.store, world.queue("target"), 0, 1)
    origin = get_property(properties_of(found.entry, envelope.read(found.entry)), b"__ORIGIN")
    assert origin == b"%b:0:0,1" % world.queue("later").topic_id.hex().encode()
    assert world.store.delay.waiting_count == 0


def test_one_record_that_cannot_be_read_does_not_hold_up_its_run() -> None:
    world = WaitingStore()
    world.store.deliveries.records = CommaRecords(world, bad=frozenset({3}))
    scheduled_batch(world, 5)
    world.pass_time(1_000)
    assert sorted(b",".join(world.delivered()).split(b",")) == [b"0", b"1", b"2", b"4"]
    assert world.store.delay.waiting_count == 1
    world.store.deliveries.records = CommaRecords(world)
    world.pass_time(10_000)
    assert sorted(b",".join(world.delivered()).split(b",")) == [b"%d" % n for n in range(5)]
