"""Messages of a pull become the records that were sent, and those of other producers too."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.transcode.remote.test_sent_records import BORN_MS, alike, headers, sent

from rockgate.gateway.transcode.remote.pulled_messages import PulledMessages
from rockgate.gateway.transcode.remote.sent_records import SentRecords
from rockgate.protocol.entry import COMPRESSED, EntryError, pack_properties
from rockgate.protocol.kafka.records.batch import check
from rockgate.protocol.kafka.records.record import Record, read_records
from rockgate.protocol.remoting.message import decode_batch, encode

ADDED = b"CLUSTER\x01DefaultCluster\x02TRACE_ON\x01true\x02MSG_REGION\x01DefaultRegion\x02"


def message(offset: int, properties: bytes, body: bytes = b"body", **more: int) -> bytes:
    """A message as a broker returns it."""
    return encode(
        topic=b"orders",
        body=body,
        properties=properties,
        queue_id=1,
        queue_offset=offset,
        position=offset * 100,
        born_ms=more.get("born_ms", BORN_MS),
        born_host=bytes(8),
        store_ms=BORN_MS + 5,
        store_host=bytes(8),
        sys_flag=more.get("sys_flag", 0),
    )


def stored(made: SentRecords, first: int = 0, added: bytes = ADDED) -> bytes:
    """The messages of a request as a broker stores them."""
    contents = decode_batch(made.body)
    rows = zip(contents.bodies, contents.properties, strict=True)
    return b"".join(
        message(first + at, bytes(packed) + added, bytes(body))
        for at, (body, packed) in enumerate(rows)
    )


def records_of(data: bytes, offset: int = 0) -> list[Record]:
    found = []
    for batch in PulledMessages().batches(data, offset):
        header = check(batch.data)
        assert (header.base_offset, header.leader_epoch) == (batch.base, 0)
        records = read_records(batch.data)
        assert batch.end == records[-1].offset + 1
        found += records
    return found


@pytest.mark.parametrize("key", [None, b"key-%05d"])
def test_records_come_back_with_their_times_keys_and_headers(key: bytes | None) -> None:
    records = alike(300, key=key, late=3)
    made = sent(records, unique=b"K00000000000000FF000200000010")
    assert records_of(stored(made)) == records


shapes = st.tuples(
    st.none() | st.binary(max_size=4) | st.sampled_from([b"a", b"b c", b" ", b"key"]),
    st.none() | st.binary(max_size=8),
    st.sampled_from([0, 0, 1, -70, 1 << 40]),
    st.lists(headers, max_size=3),
)


@settings(max_examples=budget("property_examples"))
@given(st.lists(shapes, min_size=1, max_size=20))
def test_any_records_come_back_the_same(given: list[tuple[object, ...]]) -> None:
    records = [
        Record(at, BORN_MS + late, key, value, tuple(names))  # type: ignore[operator, arg-type]
        for at, (key, value, late, names) in enumerate(given)
    ]
    for added in (ADDED, b""):
        assert records_of(stored(sent(records), added=added)) == records


@settings(max_examples=budget("property_examples"))
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["KEYS", "UNIQ_KEY", "TAGS", "MYKEYS", "n"]),
            st.sampled_from(["", "AC11", "AC12", "a b", " ", "é", "x"]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_shapes_say_what_reading_each_message_says(several: list[dict[str, str]]) -> None:
    packed = [pack_properties(each.items()) for each in several]
    whole = b"".join(message(at, each) for at, each in enumerate(packed))
    alone = [records_of(message(at, each))[0] for at, each in enumerate(packed)]
    assert records_of(whole) == alone


def test_what_a_java_producer_sent_is_seen_and_what_brokers_add_is_not() -> None:
    properties = (
        b"KEYS\x01order-1\x02UNIQ_KEY\x01AC1100\x02WAIT\x01true\x02TAGS\x01paid\x02" + ADDED
    )
    [record] = records_of(message(7, properties), 7)
    seen = (("UNIQ_KEY", b"AC1100"), ("WAIT", b"true"), ("TAGS", b"paid"))
    assert record == Record(7, BORN_MS, b"order-1", b"body", seen)


def test_a_compressed_body_is_opened_and_one_that_cannot_be_says_so() -> None:
    data = message(0, b"", zlib.compress(b"x" * 5000), sys_flag=COMPRESSED)
    data += message(1, b"", b"nothing", sys_flag=COMPRESSED)
    first, second = records_of(data)
    assert first.value == b"x" * 5000
    assert (second.value, second.headers) == (b"nothing", (("__ROCKETMQ_COMPRESSED", b"1"),))


def test_messages_before_the_offset_are_left_out() -> None:
    data = b"".join(message(at, b"") for at in range(10))
    assert [each.offset for each in records_of(data, 4)] == list(range(4, 10))
    assert records_of(data, 10) == []


def test_times_too_far_apart_are_two_batches() -> None:
    data = message(0, b"", born_ms=-(1 << 62)) + message(1, b"", born_ms=1 << 62)
    data += message(2, b"", born_ms=(1 << 63) - 1)
    found = PulledMessages().batches(data, 0)
    assert [(each.base, each.end) for each in found] == [(0, 1), (1, 3)]


@pytest.mark.parametrize("size", [1, 40, 87, 95])
def test_a_message_that_is_cut_off_is_damage(size: int) -> None:
    with pytest.raises(EntryError):
        records_of(message(0, b"")[:size])
