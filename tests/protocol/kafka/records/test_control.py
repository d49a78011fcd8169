import struct

import pytest

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import check
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker, read_marker
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records


def control_batch(*records: Record) -> bytearray:
    return build_batch(records, base_offset=0, is_transactional=True, is_control=True)


@pytest.mark.parametrize("kind", list(MarkerType))
def test_a_marker_comes_back_as_it_was_built(kind: MarkerType) -> None:
    marker = Marker(kind, producer_id=2**40, producer_epoch=3, coordinator_epoch=9)
    built = build_marker(marker, timestamp=1_000, base_offset=55)
    header = check(built)
    assert read_marker(built) == read_marker(memoryview(built)) == marker
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.base_offset, header.record_count, header.base_sequence) == (55, 1, -1)


def test_the_record_of_a_commit_is_these_bytes() -> None:
    (record,) = read_records(build_marker(Marker(MarkerType.COMMIT, 1, 2, 7), timestamp=5))
    assert record.key == bytes.fromhex("0000 0001")
    assert record.value == bytes.fromhex("0000 00000007")


def test_later_versions_of_key_and_value_are_read_by_their_beginning() -> None:
    key, value = struct.pack(">hhi", 1, 0, 5), struct.pack(">hiq", 3, 8, 1)
    marker = read_marker(control_batch(Record(0, 0, key, value)))
    assert marker == Marker(MarkerType.ABORT, -1, -1, 8)


def test_control_records_of_other_types_are_no_marker() -> None:
    assert read_marker(control_batch(Record(0, 0, struct.pack(">hh", 0, 4), None))) is None


GOOD_KEY, GOOD_VALUE = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 1)


@pytest.mark.parametrize(
    "records",
    [
        [Record(0, 0, None, GOOD_VALUE)],
        [Record(0, 0, b"\x00\x00\x00", GOOD_VALUE)],
        [Record(0, 0, struct.pack(">hh", -1, 1), GOOD_VALUE)],
        [Record(0, 0, GOOD_KEY, None)],
        [Record(0, 0, GOOD_KEY, GOOD_VALUE[:-1])],
        [Record(0, 0, GOOD_KEY, struct.pack(">hi", -1, 1))],
        [Record(0, 0, GOOD_KEY, GOOD_VALUE), Record(1, 0, GOOD_KEY, GOOD_VALUE)],
    ],
)
def test_a_broken_marker_is_malformed(records: list[Record]) -> None:
    with pytest.raises(MalformedBatch):
        read_marker(control_batch(*records))


def test_a_batch_of_data_is_no_marker() -> None:
    with pytest.raises(MalformedBatch, match="Not a control batch"):
        read_marker(build_batch([Record(0, 0, GOOD_KEY, GOOD_VALUE)], base_offset=0))
