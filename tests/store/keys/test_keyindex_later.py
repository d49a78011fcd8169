"""Keys of many messages: put behind their append, and there for whoever asks first."""

from collections.abc import Callable

import pytest
from tests.store.keymodel import ModelLog

from rockgate.protocol.entry import TRANSACTION_ROLLBACK
from rockgate.store.keys.keyfile import Shape
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.keys.pending_keys import BATCHED_MAX, WAITING_MAX
from rockgate.store.testing.memory_files import MemoryDisk

Work = Callable[[], None]


class Turned:
    """An index whose loop has to be turned by hand."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log = ModelLog()
        self.asked_for: list[Work] = []
        self.index = self.opened()
        self.index.later = self.asked_for.append

    def opened(self) -> KeyIndex:
        index = KeyIndex(self.disk.root(), Shape(50, 20_000), soon=self.asked_for.append)
        self.resumed = index.recover(log_end=self.log.end, rebuild_from=self.log.start)
        return index

    def put(self, *keys: bytes) -> list[int]:
        """Append messages together, one for each key; returns where they lie."""
        positions = [self.log.append(b"orders", [key]) for key in keys]
        properties = [b"KEYS\x01%b\x02" % key for key in keys]
        self.index.put_messages(b"orders", properties, positions, self.log.store_ms)
        return positions

    def turn(self) -> None:
        """Let the loop do what it was asked for."""
        asked_for, self.asked_for[:] = list(self.asked_for), []
        for work in asked_for:
            work()

    def found(self, key: bytes) -> list[int]:
        return self.index.query(b"orders", key, load=self.log.load, limit=9)


@pytest.fixture
def world() -> Turned:
    return Turned()


def test_the_next_turn_puts_what_waits(world: Turned) -> None:
    world.put(b"a", b"b")
    last = world.put(b"c")
    assert world.index.last_position == -1
    assert len(world.asked_for) == 1, "one turn is enough for all"
    world.turn()
    assert world.index.last_position == last[0]


def test_a_query_finds_what_waits(world: Turned) -> None:
    first, second = world.put(b"a", b"a")
    assert world.found(b"a") == [second, first]


def test_a_turn_that_comes_late_puts_nothing_twice(world: Turned) -> None:
    positions = world.put(b"a")
    assert world.found(b"a") == positions
    world.turn()
    assert world.index.last_position == positions[0]
    assert world.found(b"a") == positions


def test_a_single_key_comes_behind_those_that_wait(world: Turned) -> None:
    positions = world.put(b"a")
    position = world.log.append(b"orders", [b"a"])
    world.index.put(b"orders", [b"a"], position, world.log.store_ms)
    assert world.found(b"a") == [position, *positions]


def test_messages_that_come_one_by_one_are_put_in_the_next_turn_together(
    world: Turned,
) -> None:
    positions = []
    for number in range(9):
        key = b"%d" % (number % 2)
        position = world.log.append(b"orders", [key])
        world.index.put_entry(b"orders", b"KEYS\x01%b\x02" % key, position, world.log.store_ms)
        positions.append(position)
    assert world.index.last_position == -1
    assert len(world.asked_for) == 1, "one turn is enough for all"
    world.turn()
    assert world.index.last_position == positions[-1]
    assert world.found(b"0") == positions[::-2]
    assert world.found(b"1") == positions[-2::-2]


def test_a_batch_does_not_wait_as_long_as_single_messages_before_it(world: Turned) -> None:
    in_time: list[Work] = []
    world.index.later = in_time.append
    position = world.log.append(b"orders", [b"a"])
    world.index.put_entry(b"orders", b"KEYS\x01a\x02", position, world.log.store_ms)
    assert (len(in_time), world.asked_for) == (1, [])
    last = world.put(b"b")
    world.turn()
    assert world.index.last_position == last[0]
    in_time.pop()()
    world.put(b"c")
    assert len(world.asked_for) == 1, "the next one has a turn of its own"


def test_those_of_one_and_those_of_many_keep_their_order(world: Turned) -> None:
    found = []
    for turn in range(3):
        position = world.log.append(b"orders", [b"a"])
        world.index.put_entry(b"orders", b"KEYS\x01a\x02", position, world.log.store_ms)
        found += [position, *world.put(*[b"a"] * (1 + 7 * turn))]
    assert world.index.query(b"orders", b"a", load=world.log.load, limit=99) == found[::-1]


def test_a_rollback_and_a_message_without_keys_are_passed_over(world: Turned) -> None:
    world.index.put_entry(b"orders", b"KEYS\x01a\x02", 10, 1, TRANSACTION_ROLLBACK)
    world.index.put_entry(b"orders", b"WAIT\x01true\x02", 20, 1)
    world.turn()
    assert world.index.last_position == -1


def test_a_checkpoint_counts_what_waits(world: Turned) -> None:
    positions = world.put(b"a")
    world.index.reached(world.log.end)
    world.index.flush()
    assert world.index.durable_position == world.log.end
    assert world.opened().query(b"orders", b"a", load=world.log.load, limit=9) == positions


def test_what_waits_is_not_counted_as_on_disk(world: Turned) -> None:
    kept = world.put(b"a")
    world.turn()
    waits = world.put(b"b")
    world.index.flush()
    index = world.opened()
    assert kept[0] <= world.resumed <= waits[0], "a start puts it again from here"
    assert index.query(b"orders", b"b", load=world.log.load, limit=9) == []


def test_a_large_batch_is_put_over_several_turns_in_the_order_of_the_log(
    world: Turned,
) -> None:
    keys = [b"k%d" % number for number in range(2 * WAITING_MAX + 5)]
    positions = world.put(*keys)
    reached = []
    while world.asked_for:
        world.turn()
        reached.append(positions.index(world.index.last_position) + 1)
    assert reached == [WAITING_MAX, 2 * WAITING_MAX, len(keys)]
    assert [world.found(key) for key in keys] == [[position] for position in positions]


def test_what_is_put_behind_a_batch_under_way_comes_behind_it(world: Turned) -> None:
    positions = world.put(*(b"k%d" % number for number in range(WAITING_MAX + 2)))
    world.turn()
    behind = world.log.append(b"orders", [b"z"])
    world.index.put(b"orders", [b"z"], behind, world.log.store_ms)
    assert world.index.last_position == behind
    assert world.found(b"k%d" % (WAITING_MAX + 1)) == [positions[-1]]
    world.turn()
    assert world.found(b"z") == [behind]


def test_batches_that_wait_are_bounded(world: Turned) -> None:
    positions: list[int] = []
    while len(positions) < BATCHED_MAX:
        positions += world.put(*(b"k%d" % number for number in range(1_000)))
    assert world.index.last_position == positions[-1]
