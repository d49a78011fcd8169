"""Records become messages and come back the same, by columns and by the loop alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.transcode.dictionary import read_message
from rockgate.gateway.transcode.remote.sent_records import (
    COUNT,
    MESSAGES_MAX,
    OFFSET_MS,
    UNIQUE,
    SentRecords,
    to_messages,
    unique_key,
)
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header
from rockgate.protocol.kafka.records.record import Header, Record, build_batch, open_records
from rockgate.protocol.remoting.message import decode_batch

BORN_MS = 1_700_000_000_000


def sent(
    records: list[Record], *, born_ms: int = BORN_MS, unique: bytes | None = None
) -> SentRecords:
    batch = build_batch(records, base_offset=0)
    header = read_header(batch)
    return to_messages(open_records(batch, header), header, born_ms=born_ms, unique=unique)


def as_records(made: SentRecords, born_ms: int = BORN_MS) -> list[Record]:
    """The messages of a request as the records that they describe, by the reference codec."""
    found = []
    contents = decode_batch(made.body)
    rows = zip(contents.flags, contents.bodies, contents.properties, strict=True)
    for offset, (_, body, packed) in enumerate(rows):
        words = read_message(bytes(packed), frozenset((UNIQUE, COUNT, OFFSET_MS)))
        parts = dict(
            part.split(b"\x01", 1) for part in bytes(packed).split(b"\x02") if b"\x01" in part
        )
        value = None if words.is_null else bytes(body)
        headers = tuple((name.decode(), content) for name, content in words.headers)
        late = int(parts.get(OFFSET_MS, b"0"))
        found.append(Record(offset, born_ms + late, words.key, value, headers))
    assert len(found) == made.record_count
    return found


def alike(count: int, *, key: bytes | None = b"key-%05d", late: int = 0) -> list[Record]:
    return [
        Record(at, BORN_MS + late * at, key and (key % at), b"v" * 100, (("trace", b"x"),))
        for at in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 17, 64, 65, 200, 9000])
@pytest.mark.parametrize("key", [None, b"key-%05d"])
def test_records_that_are_alike_come_back_the_same(count: int, key: bytes | None) -> None:
    records = alike(count, key=key)
    assert as_records(sent(records)) == records


def test_one_record_that_differs_does_not_end_the_stretch_behind_it() -> None:
    records = alike(500)
    for at, value in ((100, None), (200, b""), (300, b"short"), (301, b"w" * 99)):
        records[at] = records[at]._replace(value=value)
    records[400] = records[400]._replace(key=b"two words")
    assert as_records(sent(records)) == records


texts = st.text(max_size=6).map(str.encode)
headers: st.SearchStrategy[Header] = st.tuples(
    st.sampled_from(["a", "TAGS", "KEYS", "__x", "", "é"]), st.none() | st.binary(max_size=5)
)
sizes = st.sampled_from([0, 3, 130])
shapes = st.builds(
    lambda key, size, late, names: (key, size, late, tuple(names)),
    st.none() | texts | st.binary(max_size=4),
    st.none() | sizes,
    st.sampled_from([0, 0, 1, 63, 64, 8191, 8192, -1, -70, 1 << 40]),
    st.lists(headers, max_size=3),
)


@settings(max_examples=budget("property_examples"))
@given(st.lists(st.tuples(shapes, st.sampled_from([1, 1, 3, 20, 70])), max_size=6))
def test_any_records_come_back_the_same(runs: list[tuple[tuple[object, ...], int]]) -> None:
    records: list[Record] = []
    for (key, size, late, names), count in runs:
        for _ in range(count):
            value = None if size is None else bytes(size)  # type: ignore[call-overload]
            at = len(records)
            records.append(Record(at, BORN_MS + late, key, value, names))  # type: ignore[operator, arg-type]
    if records:
        assert as_records(sent(records, born_ms=BORN_MS + 1), BORN_MS + 1) == records


def test_only_the_first_record_has_the_key_of_the_batch() -> None:
    made = sent(alike(40), unique=b"K1")
    found = [UNIQUE + b"\x01K1\x02" in bytes(each) for each in decode_batch(made.body).properties]
    assert found == [True] + [False] * 39
    assert as_records(made) == alike(40)


def test_the_key_of_a_batch_names_producer_epoch_and_sequence() -> None:
    batch = build_batch(
        alike(1), base_offset=0, producer_id=255, producer_epoch=2, base_sequence=16
    )
    assert unique_key(read_header(batch)) == b"K00000000000000FF000200000010"
    assert unique_key(read_header(build_batch(alike(1), base_offset=0))) is None


# What does not fit


def of(records: list[Record], **changes: int) -> tuple[bytes, BatchHeader]:
    batch = build_batch(records, base_offset=0)
    header = read_header(batch)
    return bytes(open_records(batch, header)), header._replace(**changes)


def test_the_most_messages_of_a_request_are_one_short_of_a_signed_short() -> None:
    records = [Record(at, BORN_MS, None, b"", ()) for at in range(MESSAGES_MAX + 1)]
    data, header = of(records[:MESSAGES_MAX])
    assert to_messages(data, header, born_ms=BORN_MS).record_count == 32_767
    data, header = of(records)
    with pytest.raises(BatchTooLarge, match="32,768 records"):
        to_messages(data, header, born_ms=BORN_MS)


def test_more_than_four_mebibytes_are_too_large() -> None:
    with pytest.raises(BatchTooLarge, match="4,194,304"):
        sent([Record(at, BORN_MS, None, bytes(1 << 20), ()) for at in range(4)])


def test_properties_that_do_not_fit_are_refused_and_not_dropped() -> None:
    with pytest.raises(BatchTooLarge, match="do not fit"):
        sent([Record(0, BORN_MS, b"k" * 40_000, b"", ())])


@pytest.mark.parametrize("index", [0, 5, 30, 99])
def test_a_damaged_record_is_named(index: int) -> None:
    records = [Record(at, BORN_MS, b"k", b"v" * 10, ()) for at in range(100)]
    data, header = of(records)
    broken = bytearray(data)
    broken[len(of(records[:index])[0]) if index else 0] = 0x7F
    with pytest.raises(MalformedBatch):
        to_messages(bytes(broken), header, born_ms=BORN_MS)


def test_offsets_with_a_gap_are_refused() -> None:
    records = [Record(at + (at > 50), BORN_MS, None, b"v", ()) for at in range(100)]
    data, header = of(records)
    with pytest.raises(MalformedBatch, match="expected 51"):
        to_messages(data, header, born_ms=BORN_MS)


def test_bytes_behind_the_last_record_are_refused() -> None:
    data, header = of(alike(100))
    with pytest.raises(MalformedBatch):
        to_messages(data + b"\0", header, born_ms=BORN_MS)
    with pytest.raises(MalformedBatch):
        to_messages(data[:-1], header, born_ms=BORN_MS)
