import weakref

import pytest
from tests.world import World

from rockgate.protocol.entry import read
from rockgate.protocol.entry.tagcode import tag_code
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.read.reader import UNITS_MAX


class TwoQueues(World):
    """A store with one topic of two queues."""

    def open(self) -> None:
        super().open()
        self.one, self.two = self.store.queues.of(self.topic("t", 2).id)

    def put(self, body: bytes, queue: Queue | None = None, tag: str | None = None) -> None:
        properties = b"" if tag is None else b"TAGS\x01" + tag.encode() + b"\x02"
        self.store.appender.message(queue or self.one, Draft(b"", 0, 0, body, properties))

    def put_batch(self, count: int) -> None:
        self.store.appender.batch(self.one, b"batch", count=count, record_ms=1)


@pytest.fixture
def world() -> TwoQueues:
    return TwoQueues()


def bodies(buffers: list[memoryview]) -> list[bytes]:
    found = []
    for view in buffers:
        at = 0
        while at < len(view):
            entry = read(view, at)
            found.append(bytes(view[entry.body_at : entry.body_at + entry.body_size]))
            at = entry.end
    return found


def test_entries_that_follow_each_other_are_one_slice(world: TwoQueues) -> None:
    for number in range(5):
        world.put(b"%d" % number)
    world.put(b"other", world.two)
    world.put(b"5")
    run = world.store.reader.message_run(world.one, 0, 6, count_max=10, size_max=1 << 20)
    assert bodies(run.buffers) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert len(run.buffers) == 2
    assert (run.message_count, run.next_offset, run.batch) == (6, 6, None)
    assert run.size == sum(map(len, run.buffers))


def test_a_run_ends_at_its_limits_and_the_first_always_fits(world: TwoQueues) -> None:
    for _ in range(4):
        world.put(b"x" * 100)
    [one] = world.store.reader.message_run(world.one, 0, 4, count_max=1, size_max=1 << 20).buffers
    assert (
        world.store.reader.message_run(world.one, 0, 4, count_max=9, size_max=1).message_count == 1
    )
    run = world.store.reader.message_run(world.one, 0, 4, count_max=9, size_max=2 * len(one))
    assert (run.message_count, run.next_offset) == (2, 2)
    assert (
        world.store.reader.message_run(world.one, 1, 3, count_max=9, size_max=1 << 20).next_offset
        == 3
    )


def test_a_batch_entry_ends_the_run_and_is_returned(world: TwoQueues) -> None:
    world.put(b"first")
    world.put_batch(3)
    world.put(b"last")
    run = world.store.reader.message_run(world.one, 0, 5, count_max=9, size_max=1 << 20)
    assert bodies(run.buffers) == [b"first"]
    assert run.batch is not None and run.batch.unit.base == 1
    assert bodies(
        world.store.reader.message_run(world.one, 4, 5, count_max=9, size_max=1 << 20).buffers
    ) == [b"last"]


def test_tags_are_asked_of_the_queue_and_the_rest_of_the_entry(world: TwoQueues) -> None:
    for tag in "ABAB":
        world.put(tag.encode(), tag=tag)
    wanted = {tag_code(b"B")}.__contains__
    run = world.store.reader.message_run(
        world.one, 0, 4, count_max=9, size_max=1 << 20, accepts_code=wanted
    )
    assert (bodies(run.buffers), run.next_offset) == ([b"B", b"B"], 4)
    run = world.store.reader.message_run(
        world.one, 0, 4, count_max=9, size_max=1 << 20, accepts=lambda view: b"A\x02" in bytes(view)
    )
    assert (bodies(run.buffers), run.next_offset) == ([b"A", b"A"], 4)


@pytest.mark.row("SUB-5")
def test_a_batch_of_one_is_not_taken_for_a_message_without_a_tag(world: TwoQueues) -> None:
    world.put(b"no tag")
    world.put_batch(1)
    wanted = {tag_code(b"B")}.__contains__
    run = world.store.reader.message_run(
        world.one, 0, 2, count_max=9, size_max=1 << 20, accepts_code=wanted
    )
    assert (run.next_offset, run.message_count) == (1, 0)
    assert run.batch is not None


@pytest.mark.row("R-07", "SUB-5")
def test_the_code_is_asked_first_and_an_entry_is_read_only_if_that_passes(world: TwoQueues) -> None:
    for tag in "ABAB":
        world.put(tag.encode(), tag=tag)
    read_bodies: list[bytes] = []

    def accepts(view: memoryview) -> bool:
        read_bodies.extend(bodies([view]))
        return len(read_bodies) > 1

    wanted = {tag_code(b"B")}.__contains__
    run = world.store.reader.message_run(
        world.one, 0, 4, count_max=9, size_max=1 << 20, accepts_code=wanted, accepts=accepts
    )
    assert read_bodies == [b"B", b"B"], "nothing is read of what its code rules out"
    assert (bodies(run.buffers), run.next_offset) == ([b"B"], 4)


@pytest.mark.row("R-07")
def test_a_tag_that_only_hashes_alike_passes_and_is_for_the_client_to_tell_apart(
    world: TwoQueues,
) -> None:
    for tag in ("AaAa", "BBBB", "CCCC"):
        world.put(tag.encode(), tag=tag)
    wanted = {tag_code(b"AaAa")}.__contains__
    run = world.store.reader.message_run(
        world.one, 0, 3, count_max=9, size_max=1 << 20, accepts_code=wanted
    )
    assert bodies(run.buffers) == [b"AaAa", b"BBBB"]


@pytest.mark.row("STORE-13")
def test_an_entry_that_does_not_match_is_passed_and_nothing_of_it_is_held(world: TwoQueues) -> None:
    for body in (b"yes 1", b"no 1", b"yes 2", b"no 2"):
        world.put(body)
    shown: list[weakref.ref[memoryview]] = []

    def accepts(view: memoryview) -> bool:
        shown.append(weakref.ref(view))
        return b"yes" in bytes(view)

    run = world.store.reader.message_run(
        world.one, 0, 4, count_max=9, size_max=1 << 20, accepts=accepts
    )
    assert (bodies(run.buffers), run.next_offset) == ([b"yes 1", b"yes 2"], 4)
    assert all(b"no" not in bytes(buffer) for buffer in run.buffers)
    assert len(shown) == 4 and all(view() is None for view in shown)


@pytest.mark.row("R-04")
@pytest.mark.row("STORE-9")
def test_a_filter_that_wants_nothing_looks_at_a_bounded_number(world: TwoQueues) -> None:
    for _ in range(UNITS_MAX + 10):
        world.put(b"x", tag="A")
    run = world.store.reader.message_run(
        world.one, 0, 1 << 40, count_max=9, size_max=1 << 20, accepts_code=lambda code: False
    )
    assert (run.next_offset, run.buffers) == (UNITS_MAX, [])
