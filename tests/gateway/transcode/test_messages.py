from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.transcode import strategies
from tests.gateway.transcode.decoding import Pulled, pulled

from rockgate.gateway.transcode.address import MessageAddress, unpack_address
from rockgate.gateway.transcode.dictionary import read_message
from rockgate.gateway.transcode.messages import CHUNK_BYTES, CHUNK_COUNT, Cut, Messages
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BORN_HOST_V6, INNER_BATCH, STORE_HOST_V6, parse_properties
from rockgate.protocol.entry.tagcode import tag_code
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression, TimestampType, stamp
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker
from rockgate.protocol.kafka.records.record import Record, build_batch

BASE = 1000
POSITION = 4096
FRAME = 16 << 20
HUGE = 1 << 40


def entry_of(
    body: bytes | bytearray,
    count: int,
    *,
    topic: bytes = b"orders",
    flags: int = 0,
    store_ms: int = 5,
) -> memoryview:
    """The batch entry with this body, at BASE."""
    body = bytearray(body)
    stamp(body, BASE, 3)
    born = bytes(20) if flags & BORN_HOST_V6 else b"\x01\x02\x03\x04\x00\x00\x00\x05"
    host = bytes(20) if flags & STORE_HOST_V6 else b"\x09\x08\x07\x06\x00\x00\x2a\x9f"
    properties = envelope.batch_properties(count, BASE)
    magic = envelope.MAGIC_BATCH
    size = envelope.head_size(flags) + len(body) + envelope.tail_size(topic, properties, magic)
    crc = envelope.body_checksum(body)
    head = envelope.pack_head(
        size, magic, crc, 2, 0, BASE, POSITION, flags | INNER_BATCH, 7, born, store_ms, host, 0, 0,
        len(body),
    )  # fmt: skip
    tail = envelope.pack_tail(head, topic, properties, magic)
    return memoryview(head + body + tail)


def opened(records: Sequence[Record], *, bytes_max: int = FRAME, **how: object) -> Messages:
    count = records[-1].offset + 1
    body = build_batch(records, base_offset=0, **how)  # type: ignore[arg-type]  # test helper
    return Messages.open(entry_of(body, count), message_bytes_max=bytes_max)


def plain(count: int, size: int = 1) -> list[Record]:
    return [Record(index, index, None, b"v" * size) for index in range(count)]


def read(messages: Messages, offset: int, *, count: int = 10_000, size: int = HUGE) -> Cut:
    return messages.select(offset, count_max=count, size_max=size)


def read_all(messages: Messages, offset: int = BASE, **limits: int) -> list[Pulled]:
    """Pull again and again, as a client does, until the batch is behind."""
    found: list[Pulled] = []
    while offset < messages.end:
        cut = read(messages, offset, **limits)
        assert cut.next_offset > offset
        part = pulled(cut.buffers)
        assert (len(part), sum(each.entry.total_size for each in part)) == (
            cut.message_count,
            cut.size,
        )
        found += part
        offset = cut.next_offset
    assert offset == messages.end
    return found


def record_of(message: Pulled) -> Record:
    words = read_message(message.properties)
    assert not (words.is_null and message.body)
    headers = tuple((name.decode(), value) for name, value in words.headers)
    value = None if words.is_null else message.body
    return Record(message.offset - BASE, message.entry.born_ms, words.key, value, headers)


def offsets(found: Sequence[Pulled]) -> list[int]:
    return [message.offset for message in found]


@given(
    st.booleans().flatmap(lambda gaps: strategies.batches(with_gaps=gaps)),
    st.sampled_from(list(Compression)),
    st.integers(1, 5),
    st.integers(1, 500),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_every_record_is_a_message_from_which_the_record_can_be_derived(
    records: list[Record], compression: Compression, count: int, size: int
) -> None:
    messages = opened(records, compression=compression)
    found = read_all(messages, count=count, size=size)
    assert [record_of(message) for message in found] == records


@given(strategies.batches(with_gaps=True), st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_pull_may_start_at_any_offset_of_a_batch(
    records: list[Record], data: st.DataObject
) -> None:
    messages = opened(records)
    start = data.draw(st.integers(BASE, messages.end - 1))
    expected = [record.offset + BASE for record in records if record.offset + BASE >= start]
    assert offsets(read_all(messages, start)) == expected


def test_the_envelope_has_the_batch_s_own_facts() -> None:
    [message] = read_all(opened([Record(0, 77, b"k", b"value")]))
    entry = message.entry
    assert (entry.topic, entry.queue_id, entry.queue_offset) == (b"orders", 2, BASE)
    assert (entry.born_ms, entry.store_ms, entry.sys_flag, entry.flag) == (77, 5, 0, 0)
    assert entry.born_host == b"\x01\x02\x03\x04\x00\x00\x00\x05"
    assert entry.store_host == b"\x09\x08\x07\x06\x00\x00\x2a\x9f"
    assert (entry.reconsume_times, entry.prepared_offset) == (0, 0)
    assert (message.body, message.properties) == (b"value", b"KEYS\x01k\x02")


@pytest.mark.parametrize("flags", [BORN_HOST_V6, STORE_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6])
def test_hosts_may_be_of_either_width(flags: int) -> None:
    body = build_batch(plain(3), base_offset=0)
    messages = Messages.open(entry_of(body, 3, flags=flags), message_bytes_max=FRAME)
    found = read_all(messages)
    assert [(each.entry.sys_flag, each.body) for each in found] == [(flags, b"v")] * 3


@pytest.mark.parametrize(("topic", "shown"), [(b"a.b", b"a|b"), (b"t" * 200, b"t" * 200)])
def test_the_topic_has_the_name_that_rocketmq_clients_know(topic: bytes, shown: bytes) -> None:
    body = build_batch([Record(0, 1, b"k", b"v", (("TAGS", b"t"),))], base_offset=0)
    messages = Messages.open(entry_of(body, 1, topic=topic), message_bytes_max=FRAME)
    accepted = messages.select(
        BASE, count_max=1, size_max=1, accepts=lambda found: found == {"KEYS": "k", "TAGS": "t"}
    )
    [message] = pulled(accepted.buffers)
    assert message.entry.topic == shown


def test_under_log_append_time_every_message_is_born_at_the_append() -> None:
    messages = opened(plain(3), timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=99)
    assert [message.entry.born_ms for message in read_all(messages)] == [99, 99, 99]


def test_each_message_has_the_address_of_its_record() -> None:
    found = read_all(opened([Record(0, 1, None, b""), Record(3, 1, None, b"")]))
    addresses = [unpack_address(message.entry.position) for message in found]
    assert addresses == [MessageAddress(POSITION, 0), MessageAddress(POSITION, 3)]


def test_a_control_batch_has_no_messages_and_is_stepped_over() -> None:
    marker = build_marker(Marker(MarkerType.COMMIT, 1, 0, 0), timestamp=1)
    messages = Messages.open(entry_of(marker, 1), message_bytes_max=FRAME)
    assert read(messages, BASE) == Cut([], 0, 0, BASE + 1)
    assert messages.message(BASE) is None


# Limits


def test_an_answer_is_one_slice_that_ends_at_the_count() -> None:
    cut = read(opened(plain(10)), BASE + 2, count=3)
    assert len(cut.buffers) == 1
    assert (offsets(pulled(cut.buffers)), cut.next_offset) == ([1002, 1003, 1004], 1005)


def test_an_answer_ends_before_its_size_but_has_one_message_in_any_case() -> None:
    messages = opened(plain(10, 100))
    one = read(messages, BASE, count=1).size
    assert read(messages, BASE, size=3 * one).message_count == 3
    assert read(messages, BASE, size=3 * one - 1).message_count == 2
    assert read(messages, BASE, size=1).message_count == 1


def test_a_chunk_is_all_that_is_made_at_once() -> None:
    messages = opened(plain(2 * CHUNK_COUNT + 1))
    assert read(messages, BASE).message_count == CHUNK_COUNT
    before = messages.size
    assert read(messages, BASE + 1).message_count == CHUNK_COUNT - 1
    assert messages.size == before
    assert len(read_all(messages)) == 2 * CHUNK_COUNT + 1


def test_a_chunk_of_large_records_ends_at_its_bytes() -> None:
    messages = opened(plain(10, CHUNK_BYTES // 2))
    assert read(messages, BASE).message_count == 2


@given(st.lists(st.integers(0, 3 * CHUNK_COUNT - 1), min_size=1, max_size=6))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_reading_in_any_order_reads_the_same(starts: list[int]) -> None:
    messages = opened(plain(3 * CHUNK_COUNT))
    for start in starts:
        message = messages.message(BASE + start)
        assert message is not None
        assert offsets(pulled([message])) == [BASE + start]
    assert offsets(read_all(messages)) == list(range(BASE, messages.end))


def test_an_offset_without_a_record_has_no_message() -> None:
    messages = opened([Record(0, 1, None, b""), Record(3, 1, None, b"")])
    found = [messages.message(BASE + index) is not None for index in range(-1, 5)]
    assert found == [False, True, False, False, True, False]


def test_a_message_larger_than_a_client_takes_is_marked_in_its_place() -> None:
    records = [Record(0, 1, b"a", b"x"), Record(1, 2, b"b", b"y" * 2000), Record(2, 3, b"c", b"z")]
    found = read_all(opened(records, bytes_max=1000))
    assert [message.body for message in found] == [b"x", b"", b"z"]
    marker = parse_properties(found[1].properties)
    full = 88 + 2000 + len(b"\x06orders") + 2 + len(b"KEYS\x01b\x02")
    assert marker == {"__KAFKA_SKIPPED": str(full), "KEYS": "b"}
    assert found[1].entry.born_ms == 2
    assert max(message.entry.total_size for message in found) <= 1000


# Filters


def tagged(*tags: str) -> list[Record]:
    return [
        Record(index, 1, None, b"v", (("TAGS", tag.encode()), ("n", b"%d" % index)) if tag else ())
        for index, tag in enumerate(tags)
    ]


def test_a_tag_filter_is_asked_with_each_record_s_code() -> None:
    asked = []

    def accepts(code: int) -> bool:
        asked.append(code)
        return code == tag_code(b"a")

    messages = opened(tagged("a", "b", "", "a", "a"))
    cut = messages.select(BASE, count_max=9, size_max=HUGE, accepts_code=accepts)
    assert asked == [tag_code(b"a"), tag_code(b"b"), 0, tag_code(b"a"), tag_code(b"a")]
    assert offsets(pulled(cut.buffers)) == [1000, 1003, 1004]
    assert (cut.message_count, len(cut.buffers), cut.next_offset) == (3, 2, 1005)


def test_a_filter_sees_properties_and_limits_count_what_it_wants() -> None:
    messages = opened(tagged("a", "b", "a", "b", "a", "b"))

    def accepts(properties: object) -> bool:
        return isinstance(properties, dict) and properties.get("TAGS") == "b"

    cut = messages.select(BASE, count_max=2, size_max=HUGE, accepts=accepts)
    assert (offsets(pulled(cut.buffers)), cut.next_offset) == ([1001, 1003], 1005)
    cut = messages.select(BASE, count_max=2, size_max=1, accepts=accepts)
    assert (offsets(pulled(cut.buffers)), cut.next_offset) == ([1001], 1003)


def test_with_nothing_wanted_the_next_offset_is_behind_all_that_was_looked_at() -> None:
    messages = opened(plain(CHUNK_COUNT + 5))
    cut = messages.select(BASE, count_max=1, size_max=1, accepts_code=lambda code: False)
    assert cut == Cut([], 0, 0, BASE + CHUNK_COUNT)
    cut = messages.select(cut.next_offset, count_max=1, size_max=1, accepts_code=lambda code: False)
    assert cut == Cut([], 0, 0, messages.end)


# Damage


def damaged(records: Sequence[Record], at: int) -> Messages:
    """The batch with one byte of its last record's length wrong."""
    body = build_batch(records, base_offset=0)
    body[at] = 0x7F
    return Messages.open(entry_of(body, len(records)), message_bytes_max=FRAME)


def test_a_batch_is_read_up_to_its_damage_and_then_stepped_over() -> None:
    messages = damaged(plain(3), 61 + 2 * 8)
    assert offsets(read_all(messages)) == [1000, 1001]
    assert messages.damage is not None


def test_damage_in_front_of_where_a_pull_starts_steps_over_the_batch() -> None:
    messages = damaged(plain(3), 61)
    assert read(messages, BASE + 1) == Cut([], 0, 0, messages.end)
    assert messages.damage is not None


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"short", 1),
        (build_batch(plain(2), base_offset=0), 3),
        (build_batch(plain(1), base_offset=0)[:61], 1),
        (build_batch(plain(2), base_offset=0, compression=Compression.GZIP)[:-9], 2),
    ],
)
def test_what_cannot_be_opened_is_malformed_and_has_no_messages(body: bytes, count: int) -> None:
    view = entry_of(body.ljust(16, b"\x00"), count)
    with pytest.raises(MalformedBatch):
        Messages.open(view, message_bytes_max=FRAME)
    assert read(Messages.unreadable(view), BASE) == Cut([], 0, 0, BASE + count)


@given(st.integers(61, 61 + 30 * 3 - 1), st.integers(0, 255), st.integers(0, 9))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_no_damage_hangs_or_fails_a_pull(at: int, byte: int, start: int) -> None:
    records = [Record(index, 5, b"k", b"v", (("h", b"1"),)) for index in range(10)]
    body = build_batch(records, base_offset=0)
    body[at] = byte
    messages = Messages.open(entry_of(body, 10), message_bytes_max=FRAME)
    read_all(messages, BASE + start)
    read_all(messages)
