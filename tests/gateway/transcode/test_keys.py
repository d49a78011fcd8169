from __future__ import annotations

import pytest

from rockgate.gateway.transcode.keys import indexes_of, record_keys
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker
from rockgate.protocol.kafka.records.record import Record, build_batch

KEYS = (b"a", None, b"b c", b"", b"\xff", b"a", "ä".encode(), b"c")


def body(compression: Compression = Compression.NONE) -> memoryview:
    records = [Record(index + 70, 1, key, b"v") for index, key in enumerate(KEYS)]
    return memoryview(build_batch(records, base_offset=70, compression=compression))


@pytest.mark.parametrize("compression", list(Compression))
def test_the_keys_of_a_batch_are_those_that_are_text_whole_and_word_by_word(
    compression: Compression,
) -> None:
    expected = [b"a", b"b c", b"b", b"c", "ä".encode()]
    assert record_keys(body(compression)) == expected


@pytest.mark.parametrize(
    ("key", "indexes"),
    [(b"a", [0, 5]), (b"b c", [2]), (b"c", [2, 7]), (b"\xff", []), (b"", []), (b"x", [])],
)
def test_each_key_leads_to_its_records(key: bytes, indexes: list[int]) -> None:
    assert indexes_of(body(), key) == indexes


def test_a_control_batch_has_no_keys() -> None:
    marker = build_marker(Marker(MarkerType.ABORT, 1, 0, 0), timestamp=1)
    assert record_keys(memoryview(marker)) == []


def test_damage_ends_the_keys() -> None:
    records = [Record(index, 1, b"k%d" % index, b"v") for index in range(3)]
    damaged = build_batch(records, base_offset=0)
    damaged[61 + 2 * 10] = 0x7F
    assert record_keys(memoryview(damaged)) == [b"k0", b"k1"]
    assert record_keys(memoryview(b"nothing")) == []
