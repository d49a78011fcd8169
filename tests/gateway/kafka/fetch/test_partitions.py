"""What is read of one partition, rule by rule; limits over many are the handler's own."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.world import KafkaWorld
from tests.world import NOW_MS

from rockgate.gateway.kafka.fetch import partitions
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.fetch import Diverging, FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.protocol.kafka.records.batch import read_header, split
from rockgate.protocol.kafka.records.record import Record, read_records

Limits = tuple[int, bool]
"""Bytes, and whether one batch is returned in any case."""

ALL: Limits = (1 << 30, True)


def read(
    world: KafkaWorld,
    offset: int = 0,
    *,
    leader_epoch: int = -1,
    last_epoch: int = -1,
    limits: Limits = ALL,
) -> FetchedPartition:
    asked = FetchPartition(
        partition=0,
        fetch_offset=offset,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_epoch,
    )
    return world.partitions.read(world.queue(), asked, *limits, False, None)[0]


def offsets(fetched: FetchedPartition) -> list[int]:
    return [record.offset for record in records(fetched)]


def records(fetched: FetchedPartition) -> list[Record]:
    return [record for view in batches(fetched) for record in read_records(view)]


def batches(fetched: FetchedPartition) -> list[memoryview]:
    return [view for part in fetched.records or () for _, view in split(memoryview(part))]


@pytest.fixture
def world() -> KafkaWorld:
    """Offsets 0 to 9 in batches of two, of which two are deleted; the second epoch is the current
    one and began at 6."""
    world = KafkaWorld()
    world.topic()
    for number in range(5):
        if number == 3:
            world.reopen()
        world.append(times=[1, 2])
    world.delete_records(2)
    return world


@pytest.mark.parametrize(
    ("offset", "code", "found"),
    [
        (-1, ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (0, ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (1, ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (2, 0, [2, 3, 4, 5, 6, 7, 8, 9]),
        (5, 0, [4, 5, 6, 7, 8, 9]),
        (9, 0, [8, 9]),
        (10, 0, []),
        (11, ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (1 << 62, ErrorCode.OFFSET_OUT_OF_RANGE, []),
    ],
)
def test_offsets_from_the_log_start_to_the_end_are_in_range(
    world: KafkaWorld, offset: int, code: int, found: list[int]
) -> None:
    fetched = read(world, offset)
    assert (fetched.error_code, offsets(fetched)) == (code, found)
    bounds = (fetched.log_start_offset, fetched.high_watermark, fetched.last_stable_offset)
    assert bounds == ((-1, -1, -1) if code else (2, 10, 10))


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [(-1, 0), (2, 0), (1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_the_leader_epoch_is_looked_at_before_the_offset(
    world: KafkaWorld, leader_epoch: int, code: int
) -> None:
    assert read(world, 2, leader_epoch=leader_epoch).error_code == code
    if code:
        assert read(world, 99, leader_epoch=leader_epoch).error_code == code


@pytest.mark.parametrize(
    ("offset", "last_epoch", "code", "diverging"),
    [
        (6, 1, 0, None),
        (4, 1, 0, None),
        (7, 1, 0, Diverging(1, 6)),
        (99, 1, 0, Diverging(1, 6)),
        (10, 2, 0, None),
        (11, 2, 0, Diverging(2, 10)),
        (1, 1, ErrorCode.OFFSET_OUT_OF_RANGE, None),
        (6, 3, ErrorCode.OFFSET_OUT_OF_RANGE, None),
        # Epoch 0 wrote nothing that is left: the log begins where it would have ended.
        (2, 0, 0, None),
        (3, 0, 0, Diverging(0, 2)),
    ],
)
def test_a_client_whose_last_epoch_ended_before_its_offset_is_told_where(
    world: KafkaWorld, offset: int, last_epoch: int, code: int, diverging: Diverging | None
) -> None:
    fetched = read(world, offset, last_epoch=last_epoch)
    assert (fetched.error_code, fetched.diverging) == (code, diverging)
    assert fetched.records == () or diverging is None
    if diverging is not None:
        assert (fetched.log_start_offset, fetched.high_watermark) == (2, 10)


def test_a_client_whose_last_epoch_wrote_nothing_here_has_read_what_was_lost() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    world.reopen()
    world.reopen()
    assert read(world, 1, last_epoch=2).diverging == Diverging(1, 1)


def test_without_room_no_records_are_returned_but_the_bounds_are(world: KafkaWorld) -> None:
    fetched = read(world, 2, limits=(0, False))
    assert (fetched.records, fetched.high_watermark, fetched.error_code) == ((), 10, 0)


@pytest.mark.parametrize(
    ("offset", "count", "is_cut"), [(2, 4, False), (2, 3, True), (9, 1, False), (10, 0, False)]
)
def test_a_read_says_whether_more_was_there_than_fits(
    world: KafkaWorld, offset: int, count: int, is_cut: bool
) -> None:
    size = len(batches(read(world, 2))[0])
    asked = FetchPartition(partition=0, fetch_offset=offset)
    limits = (count * size, True)
    assert world.partitions.read(world.queue(), asked, *limits, False, None)[1] is is_cut


def test_a_damaged_index_is_an_error_of_this_partition(world: KafkaWorld) -> None:
    unit = world.queue().find(8)
    assert unit is not None
    view = world.store.log.slice(unit.position, unit.size)
    assert view is not None
    view[3] ^= 1
    assert read(world, 8).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_many_small_batches_are_one_buffer_and_large_ones_slices() -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(5):
        world.append()
    assert [type(part) for part in read(world).records or ()] == [bytes]
    assert offsets(read(world)) == [0, 1, 2, 3, 4]
    for _ in range(2):
        world.append(value=b"x" * 10_000)
    assert [type(part) for part in read(world).records or ()] == [memoryview] * 7


# Message entries


def test_a_run_of_message_entries_is_one_batch_of_its_epoch() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    for number in range(3):
        world.message(body=b"%d" % number, born_ms=NOW_MS + number)
    world.append()
    fetched = read(world)
    assert offsets(fetched) == [0, 1, 2, 3]
    header = read_header(batches(fetched)[1])
    assert (header.base_offset, header.record_count, header.leader_epoch) == (1, 3, 1)
    assert [record.value for record in records(fetched)[1:]] == [b"0", b"1", b"2"]
    asked = FetchPartition(partition=0, fetch_offset=0)
    assert world.partitions.read(world.queue(), asked, *ALL, False, None)[1]
    # What follows them comes with the next answer.
    assert offsets(read(world, 4)) == [4]


def test_a_run_of_message_entries_is_cut_where_an_epoch_begins() -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(3):
        world.message()
        world.message()
        world.reopen()
    fetched = read(world)
    headers = [read_header(view) for view in batches(fetched)]
    found = [(header.leader_epoch, header.base_offset, header.record_count) for header in headers]
    assert found == [(1, 0, 2), (2, 2, 2), (3, 4, 2)]


def test_messages_that_are_alike_are_cut_where_an_epoch_begins_too() -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(2):
        for _ in range(10):
            world.message(properties={"UNIQ_KEY": "01FD"})
        world.reopen()
    for offset, epochs in {0: [1, 2], 5: [1, 2], 10: [2]}.items():
        fetched = read(world, offset)
        assert [read_header(view).leader_epoch for view in batches(fetched)] == epochs
        assert offsets(fetched) == list(range(offset, 20))


@pytest.mark.parametrize("properties", [{}, {"UNIQ_KEY": "01FD"}])
def test_a_batch_made_of_messages_is_kept_for_the_next_reader(properties: dict[str, str]) -> None:
    world = KafkaWorld()
    world.topic()
    for number in range(20):
        world.message(body=b"%d" % number * 3_000, properties=properties)
    [made] = read(world, 2).records or ()
    [again] = read(world, 2).records or ()
    assert again is made
    assert offsets(read(world, 3)) == list(range(3, 20))
    assert offsets(read(world, 2, limits=(20_000, True))) == [2, 3, 4, 5, 6, 7]


def test_message_entries_are_limited_by_size_too() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    for _ in range(5):
        world.message(body=b"x" * 100)
    first = world.queue().find(1)
    assert first is not None
    assert offsets(read(world, 1, limits=(1, True))) == [1]
    assert offsets(read(world, 1, limits=(1, False))) == []
    assert offsets(read(world, 1, limits=(2 * first.size, False))) == [1, 2]
    assert offsets(read(world, 0, limits=(1, True))) == [0]


def test_the_collector_asks_a_fetched_partition_by_the_right_places() -> None:
    fields = FetchedPartition._fields
    assert fields[partitions.ERROR_FIELD] == "error_code"
    assert fields[partitions.RECORDS_FIELD] == "records"
    assert fields[partitions.DIVERGING_FIELD] == "diverging"
