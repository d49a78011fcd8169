"""The envelope: the hand codec against the declaration, and against every kind of damage."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from struct import error as struct_error
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.seeds import seeded

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BORN_HOST_V6,
    CHECKSUM_SIZE,
    INNER_BATCH,
    MAGIC_BATCH,
    MAGIC_V1,
    MAGIC_V2,
    STORE_HOST_V6,
    Entry,
    EntryError,
)
from rockgate.protocol.entry.layout import BLANK_LAYOUT, LAYOUTS

GOLDEN = Path(__file__).parents[1] / "golden" / "entry"
SHAPES = list(product((MAGIC_V1, MAGIC_V2, MAGIC_BATCH), (False, True), (False, True)))
"""Every magic with every width of the two hosts: twelve layouts."""

HEAD_FIELDS = Entry._fields[: Entry._fields.index("body_size")]


class Parts(NamedTuple):
    """An entry before it is packed."""

    magic: int
    sys_flag: int
    values: dict[str, Any]
    topic: bytes
    body: bytes
    properties: bytes

    def pack(self) -> bytes:
        head_size = envelope.head_size(self.sys_flag)
        tail_size = envelope.tail_size(self.topic, self.properties, self.magic)
        head = envelope.pack_head(
            **self.values,
            total_size=head_size + len(self.body) + tail_size,
            magic=self.magic,
            body_crc=envelope.body_checksum(self.body),
            sys_flag=self.sys_flag,
            body_size=len(self.body),
        )
        tail = envelope.pack_tail(head, self.topic, self.properties, self.magic)
        assert (len(head), len(tail)) == (head_size, tail_size)
        return head + self.body + tail


def flags_of(magic: int, born_v6: bool, store_v6: bool) -> int:
    hosts = (BORN_HOST_V6 if born_v6 else 0) | (STORE_HOST_V6 if store_v6 else 0)
    return hosts | (INNER_BATCH if magic == MAGIC_BATCH else 0)


def example(magic: int, born_v6: bool = False, store_v6: bool = False, **changes: Any) -> Parts:
    values = {
        "queue_id": 7,
        "flag": 12,
        "queue_offset": 41,
        "position": 1 << 33,
        "born_ms": 1_700_000_000_123,
        "born_host": envelope.pack_host(bytes(range(16 if born_v6 else 4)), 50001),
        "store_ms": 1_700_000_000_456,
        "store_host": envelope.pack_host(bytes(range(16 if store_v6 else 4)), 10911),
        "reconsume_times": 2,
        "prepared_offset": 99,
    }
    properties = b"KEYS\x01one two\x02"
    if magic == MAGIC_BATCH:
        properties = envelope.batch_properties(3, 41, properties)
    flags = flags_of(magic, born_v6, store_v6)
    parts = Parts(magic, flags, values, b"orders", b"a body", properties)
    return parts._replace(**changes)


int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"))


@st.composite
def all_parts(draw: st.DrawFn) -> Parts:
    magic, born_v6, store_v6 = draw(st.sampled_from(SHAPES))
    own_flags = draw(st.integers(0, 2**31 - 1)) & ~(BORN_HOST_V6 | STORE_HOST_V6 | INNER_BATCH)
    values = {
        "queue_id": draw(int32),
        "flag": draw(int32),
        "queue_offset": draw(int64),
        "position": draw(int64),
        "born_ms": draw(int64),
        "born_host": draw(st.binary(min_size=20 if born_v6 else 8, max_size=20 if born_v6 else 8)),
        "store_ms": draw(int64),
        "store_host": draw(
            st.binary(min_size=20 if store_v6 else 8, max_size=20 if store_v6 else 8)
        ),
        "reconsume_times": draw(int32),
        "prepared_offset": draw(int64),
    }
    properties = envelope.pack_properties(draw(st.lists(st.tuples(text.filter(bool), text))))
    if magic == MAGIC_BATCH:
        count = draw(st.integers(1, envelope.COUNT_MAX))
        properties = envelope.batch_properties(count, draw(st.integers(0, 2**63 - 1)), properties)
    topic = draw(st.binary(max_size=127 if magic == MAGIC_V1 else 400))
    flags = own_flags | flags_of(magic, born_v6, store_v6)
    return Parts(magic, flags, values, topic, draw(st.binary(max_size=300)), properties)


# Parity of the hand codec with the declaration


def test_there_is_a_layout_for_every_magic_and_every_width_of_the_hosts() -> None:
    assert set(LAYOUTS) == set(SHAPES)


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(all_parts())
def test_what_is_packed_by_hand_is_parsed_alike_by_the_declaration_and_by_hand(
    parts: Parts,
) -> None:
    data = parts.pack()
    flags = parts.sys_flag
    layout = LAYOUTS[parts.magic, bool(flags & BORN_HOST_V6), bool(flags & STORE_HOST_V6)]
    declared = layout.parse(data)
    read = envelope.read(data)
    for name in HEAD_FIELDS:
        assert getattr(read, name) == declared[name], name
    assert declared.total_size == len(data) == read.end
    assert declared.topic == read.topic == parts.topic
    assert declared.body == data[read.body_at :][: read.body_size] == parts.body
    assert declared.properties == data[read.properties_at : read.end]
    assert envelope.properties_of(data, read) == parts.properties
    assert layout.build(declared) == data
    envelope.check(data, read)


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(all_parts(), st.binary(max_size=50), st.binary(max_size=50))
def test_an_entry_reads_the_same_wherever_it_lies(
    parts: Parts, before: bytes, behind: bytes
) -> None:
    data = parts.pack()
    alone = envelope.read(data)
    around = memoryview(before + data + behind)
    read = envelope.read(around, len(before), len(before) + len(data))
    envelope.check(around, read)
    assert read[: len(HEAD_FIELDS) + 1] == alone[: len(HEAD_FIELDS) + 1]
    assert (read.topic, read.offset_count) == (alone.topic, alone.offset_count)
    assert (read.start, read.end) == (len(before), len(before) + len(data))
    assert read.body_at - len(before) == alone.body_at
    assert read.properties_at - len(before) == alone.properties_at
    assert envelope.places(around, len(before)) == (
        *(read.total_size, read.magic, read.queue_id, read.queue_offset),
        *(read.body_at, read.body_size),
    )


def test_a_blank_filler_is_its_declaration() -> None:
    data = envelope.pack_blank(1234)
    declared = BLANK_LAYOUT.parse(data)
    assert (declared.total_size, declared.magic) == envelope.peek(data, 0)
    assert envelope.peek(b"xx" + data, 2) == (1234, envelope.MAGIC_BLANK)
    assert len(data) == envelope.BLANK_SIZE


def test_a_message_takes_one_offset_and_a_batch_its_count() -> None:
    assert envelope.read(example(MAGIC_V1).pack()).offset_count == 1
    read = envelope.read(example(MAGIC_BATCH).pack())
    assert (read.is_batch, read.offset_count) == (True, 3)
    largest = envelope.batch_properties(envelope.COUNT_MAX, 0)
    parts = example(MAGIC_BATCH, properties=largest)
    assert envelope.read(parts.pack()).offset_count == envelope.COUNT_MAX


# RocketMQ's own bytes


def golden(name: str) -> bytes:
    lines = (GOLDEN / name).read_text(encoding="ascii").splitlines()
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


@pytest.mark.row("U-10")
def test_a_message_of_a_rocketmq_broker_is_read_field_by_field() -> None:
    data = golden("view-message-rocketmq-5.5.0.hex")
    read = envelope.read(data)
    assert read.end == len(data)
    assert (read.magic, read.queue_id, read.queue_offset, read.position) == (MAGIC_V1, 1, 1, 31161)
    assert (read.born_ms, read.store_ms) == (1794801193000, 1794801193001)
    assert envelope.unpack_host(read.store_host) == (b"\x7f\0\0\1", 20911)
    assert read.topic == b"rs_sl25j_query_message_t"
    body = data[read.body_at : read.body_at + read.body_size]
    assert (body, envelope.body_checksum(body)) == (b"q4", read.body_crc)
    properties = data[read.properties_at : read.end]
    assert envelope.get_property(properties, b"KEYS") == b"order-4 all"
    found = envelope.parse_properties(properties)
    assert found["UNIQ_KEY"].startswith("FD00")
    assert envelope.pack_properties(found.items()) == properties
    with pytest.raises(EntryError, match="checksum"):
        envelope.check(data, read)


@pytest.mark.row("U-10")
def test_a_message_of_a_rocketmq_broker_is_rebuilt_byte_for_byte() -> None:
    data = golden("view-message-rocketmq-5.5.0.hex")
    layout = LAYOUTS[MAGIC_V1, False, False]
    assert layout.build(layout.parse(data)) == data


# Damage


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_flipped_bit_of_an_entry_is_detected(shape: tuple[int, bool, bool]) -> None:
    data = bytearray(example(*shape).pack())
    for at in range(len(data) * 8):
        data[at // 8] ^= 1 << at % 8
        with pytest.raises(EntryError):
            envelope.check(data, envelope.read(data))
        with pytest.raises(EntryError):
            envelope.verify(memoryview(data), 0, len(data), 1 << 33)
        data[at // 8] ^= 1 << at % 8
    envelope.check(data, envelope.read(data))
    assert envelope.verify(memoryview(data), 0, len(data), 1 << 33)[0] == len(data)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_entry_cut_at_any_byte_is_refused(shape: tuple[int, bool, bool]) -> None:
    data = example(*shape).pack()
    for size in range(len(data)):
        with pytest.raises(EntryError):
            envelope.read(data[:size])
        with pytest.raises(EntryError):
            envelope.read(data, 0, size)
        with pytest.raises(EntryError):
            envelope.verify(memoryview(data), 0, size, 1 << 33)


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(all_parts(), st.binary(max_size=50), st.binary(max_size=50))
def test_verifying_an_entry_is_reading_it_and_checking_it(
    parts: Parts, before: bytes, behind: bytes
) -> None:
    data = memoryview(before + parts.pack() + behind)
    at, end = len(before), len(data) - len(behind)
    position = parts.values["position"]
    whole = (end - at, parts.sys_flag, parts.values["store_ms"])
    assert envelope.verify(data, at, end, position) == whole
    assert envelope.verify(data, at, len(data), position) == whole
    with pytest.raises(EntryError, match=f"claims position {position}"):
        envelope.verify(data, at, end, position ^ 1)


def test_verifying_damaged_bytes_fails_exactly_where_reading_and_checking_do() -> None:
    source = damaged(seeded())
    for _ in range(budget("fuzz_rounds") * 10):
        data = memoryview(next(source))
        reasons = []
        for verify in (True, False):
            try:
                if verify:
                    envelope.verify(data, 0, len(data), 1 << 33)
                else:
                    read = envelope.read(data)
                    if read.position != 1 << 33:
                        raise EntryError(f"entry claims position {read.position}")
                    envelope.check(data, read)
                reasons.append("whole")
            except EntryError as error:
                reasons.append(error.reason)
        assert reasons[0] == reasons[1]


def damaged(random: Random) -> Iterator[bytes]:
    """Yield entries with bytes replaced, most of them in the lengths and what decides on them."""
    while True:
        data = bytearray(example(*random.choice(SHAPES)).pack())
        for _ in range(random.randint(1, 4)):
            at = random.choice((*range(8), *range(36, 40), random.randrange(len(data))))
            data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        body_at = envelope.head_size(int.from_bytes(data[36:40], "big"))
        if random.random() < 0.5:
            data[body_at - 4 : body_at] = random.choice(
                (bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", random.randbytes(4))
            )
        yield bytes(data[: random.randint(0, len(data))] if random.random() < 0.3 else data)


def test_reading_damaged_bytes_raises_an_entry_error_or_reads_within_the_bytes() -> None:
    source = damaged(seeded())
    for _ in range(budget("fuzz_rounds") * 10):
        data = next(source)
        try:
            read = envelope.read(data)
        except EntryError:
            continue
        assert 0 <= read.body_at <= read.body_at + read.body_size <= read.properties_at
        assert read.properties_at + read.properties_size == read.end <= len(data)
        envelope.properties_of(data, read)


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(st.binary(max_size=400), st.integers(0, 420))
def test_reading_any_bytes_raises_nothing_but_an_entry_error(data: bytes, at: int) -> None:
    for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BATCH):
        told = data[: at + 4] + magic.to_bytes(4, "big") + data[at + 8 :]
        try:
            envelope.check(told, envelope.read(told, at))
        except EntryError as error:
            assert error.reason == str(error)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"total_size": 0}, "body size 6 exceeds the entry size 0"),
        ({"total_size": 100_000}, "size 100000 exceeds the"),
        ({"magic": 0}, "unknown magic 0x00000000"),
        ({"magic": envelope.MAGIC_BLANK}, "unknown magic 0xcbd43194"),
        ({"body_size": 2**32 - 1}, "body size 4294967295 exceeds"),
    ],
)
def test_the_error_says_what_is_wrong(change: dict[str, int], reason: str) -> None:
    data = example(MAGIC_V1).pack()
    read = envelope.read(data)
    values = {name: getattr(read, name) for name in (*HEAD_FIELDS, "body_size")}
    head = envelope.pack_head(**(values | change))
    with pytest.raises(EntryError, match=reason):
        envelope.read(head + data[read.body_at :])


@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"INNER_BASE\x0141\x02",
        b"INNER_NUM\x013\x02",
        b"INNER_NUM\x010000000000\x02",
        b"INNER_NUM\x012147483648\x02",
        b"INNER_NUM\x01-000000001\x02",
        b"INNER_NUM\x01 000000001\x02",
        b"INNER_NUM\x01\xb2\xb2\xb2\xb2\xb2\xb2\xb2\xb2\xb2\xb2\x02",
        b"INNER_NUM\x0100000000031\x02",
    ],
)
def test_a_batch_entry_without_a_proper_count_is_refused(properties: bytes) -> None:
    with pytest.raises(EntryError, match="INNER_NUM"):
        envelope.read(example(MAGIC_BATCH, properties=properties).pack())


def test_an_entry_without_its_checksum_is_not_taken_for_a_checked_one() -> None:
    layout = LAYOUTS[MAGIC_V1, False, False]
    values = layout.parse(example(MAGIC_V1).pack())
    values.properties = b"a\x01b\x02"
    values.total_size -= len(b"KEYS\x01one two\x02") + CHECKSUM_SIZE - len(values.properties)
    data = layout.build(values)
    with pytest.raises(EntryError, match="has no checksum"):
        envelope.check(data, envelope.read(data))


def test_an_empty_body_is_checked_too() -> None:
    parts = example(MAGIC_V1, body=b"")
    data = parts.pack()
    envelope.check(data, envelope.read(data))
    read = envelope.read(data)
    values = {name: getattr(read, name) for name in (*HEAD_FIELDS, "body_size")}
    head = envelope.pack_head(**(values | {"body_crc": 1}))
    forged = head + envelope.pack_tail(head, parts.topic, parts.properties, MAGIC_V1)
    with pytest.raises(EntryError, match="body checksum mismatch"):
        envelope.check(forged, envelope.read(forged))


# Limits


@pytest.mark.row("PUT-4")
@pytest.mark.row("U-10")
def test_a_topic_of_127_bytes_is_version_1_and_of_128_version_2() -> None:
    assert envelope.topic_magic(b"t" * 127) == MAGIC_V1
    assert envelope.topic_magic(b"t" * 128) == MAGIC_V2
    for size in (0, 127, 128, 32767):
        topic = b"t" * size
        data = example(envelope.topic_magic(topic), topic=topic).pack()
        read = envelope.read(data)
        envelope.check(data, read)
        assert read.topic == topic


@pytest.mark.row("U-10")
def test_properties_may_take_32767_bytes_with_their_checksum() -> None:
    room = envelope.PROPERTIES_SIZE_MAX - CHECKSUM_SIZE
    properties = b"p\x01" + b"v" * (room - 3) + b"\x02"
    data = example(MAGIC_V1, properties=properties).pack()
    read = envelope.read(data)
    envelope.check(data, read)
    assert envelope.properties_of(data, read) == properties


@pytest.mark.parametrize(
    "change",
    [
        {"magic": MAGIC_V1, "topic": b"t" * 128},
        {"magic": MAGIC_V2, "topic": b"t" * 32768},
        {"magic": MAGIC_V1, "properties": b"p" * (32768 - CHECKSUM_SIZE)},
    ],
)
def test_a_length_that_java_would_read_as_negative_is_never_written(change: Any) -> None:
    with pytest.raises(struct_error):
        example(MAGIC_V1)._replace(**change).pack()


@pytest.mark.parametrize(("magic", "width"), [(MAGIC_V1, 1), (MAGIC_V2, 2), (MAGIC_BATCH, 2)])
def test_a_negative_length_is_refused(magic: int, width: int) -> None:
    data = bytearray(example(magic).pack())
    topic_at = envelope.read(data).body_at + len(b"a body")
    for at, size in ((topic_at, width), (topic_at + width + len(b"orders"), 2)):
        for length in (-1, -2, -(topic_at + width), -(1 << (8 * size - 1))):
            told = data.copy()
            told[at : at + size] = (length % (1 << 8 * size)).to_bytes(size, "big")
            with pytest.raises(EntryError):
                envelope.read(told)


def test_a_host_of_the_wrong_width_is_our_own_bug() -> None:
    parts = example(MAGIC_V1)
    parts.values["born_host"] = bytes(20)
    with pytest.raises(AssertionError):
        parts.pack()


# Properties


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(st.dictionaries(text.filter(bool), text, max_size=8))
def test_properties_come_back_as_they_were_packed(pairs: dict[str, str]) -> None:
    data = envelope.pack_properties(pairs.items())
    assert envelope.parse_properties(data) == pairs
    for name, value in pairs.items():
        assert envelope.get_property(data, name.encode()) == value.encode()


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(st.lists(st.sampled_from([b"a", b"b", b"\x01", b"\x02", b"\xff", "ä".encode()])))
def test_one_property_and_all_properties_agree_on_any_bytes(parts: list[bytes]) -> None:
    data = b"".join(parts)
    found = envelope.parse_properties(data)
    for name in ("a", "b", "ab", "ä", "aä"):
        one = envelope.get_property(data, name.encode())
        assert found.get(name) == (None if one is None else one.decode("utf-8", "surrogateescape"))
    packed = envelope.pack_properties(found.items())
    assert envelope.parse_properties(packed) == found


def test_of_a_name_that_occurs_twice_the_last_value_counts_as_in_rocketmq() -> None:
    data = b"a\x011\x02b\x01x\x02a\x012\x02"
    assert envelope.parse_properties(data) == {"a": "2", "b": "x"}
    assert envelope.get_property(data, b"a") == b"2"


def test_a_name_is_not_found_inside_a_longer_name_or_a_value() -> None:
    data = b"MYKEYS\x01no\x02v\x01KEYS\x01no\x02"
    assert envelope.get_property(data, b"KEYS") is None
    assert envelope.get_property(data + b"KEYS\x01yes", b"KEYS") == b"yes"


@pytest.mark.parametrize("pair", [("", "v"), ("a\x01", "v"), ("a\x02", "v"), ("a", "\x02")])
def test_a_property_that_would_not_come_back_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="is empty or contains a separator"):
        envelope.pack_properties([pair])


@pytest.mark.parametrize("address", [bytes([127, 0, 0, 1]), bytes(range(16))])
def test_a_host_comes_back_as_it_was_packed(address: bytes) -> None:
    host = envelope.pack_host(address, 65535)
    assert len(host) == len(address) + 4
    assert envelope.unpack_host(host) == (address, 65535)


# Batches made from a frame


@settings(deadline=None, max_examples=budget("entry_examples"))
@given(
    topic=st.one_of(st.binary(max_size=400), st.sampled_from([b"%d", b"100%", b"%(a)s%%"])),
    offset=st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([9, 10, 99, 10**18])),
    count=st.integers(1, envelope.COUNT_MAX),
    body=st.binary(max_size=300),
    numbers=st.tuples(int32, int64, int64, int64),
    host=st.binary(min_size=8, max_size=8),
)
def test_a_batch_made_from_a_frame_has_the_bytes_of_one_packed_field_by_field(
    topic: bytes,
    offset: int,
    count: int,
    body: bytes,
    numbers: tuple[int, int, int, int],
    host: bytes,
) -> None:
    queue_id, position, born_ms, store_ms = numbers
    values = {
        "queue_id": queue_id,
        "flag": 0,
        "queue_offset": offset,
        "position": position,
        "born_ms": born_ms,
        "born_host": bytes(8),
        "store_ms": store_ms,
        "store_host": host,
        "reconsume_times": 0,
        "prepared_offset": 0,
    }
    properties = envelope.batch_properties(count, offset)
    whole = Parts(MAGIC_BATCH, INNER_BATCH, values, topic, body, properties).pack()
    frame = envelope.batch_frame(topic, offset)
    size = frame.size + len(body)
    place = memoryview(bytearray(b"." + bytes(envelope.HEAD_SIZE_V4) + body + bytes(size)))
    envelope.enclose_batch(
        place,
        1,
        1 + size,
        place[1 + envelope.HEAD_SIZE_V4 :][: len(body)],
        frame.tail,
        queue_id,
        offset,
        count,
        position,
        born_ms,
        store_ms,
        host,
    )
    assert place[: 1 + size] == b"." + whole
    assert not any(place[1 + size :])
    assert len(whole) == size
    assert offset < frame.until


def test_a_frame_fits_the_offsets_of_as_many_digits_and_no_frame_fits_none() -> None:
    assert envelope.NO_FRAME.until == 0
    for offset in (0, 9, 10, 99, 100, 10**17):
        frame = envelope.batch_frame(b"orders", offset)
        assert frame.until == 10 ** len(str(offset))
        assert envelope.batch_frame(b"orders", frame.until - 1) == frame
        assert envelope.batch_frame(b"orders", frame.until).size == frame.size + 1


# Single fields


@given(all_parts())
def test_a_field_alone_is_the_field_of_the_whole_entry(parts: Parts) -> None:
    packed = memoryview(parts.pack())
    entry = envelope.read(packed)
    assert envelope.born_ms_of(packed) == entry.born_ms
    if entry.sys_flag & (BORN_HOST_V6 | STORE_HOST_V6):
        return
    size, magic, offset, flags, born_ms, body_size = envelope.message_fields(packed)
    assert (size, magic, offset) == (entry.total_size, entry.magic, entry.queue_offset)
    assert (flags, born_ms, body_size) == (entry.sys_flag, entry.born_ms, entry.body_size)
    if magic == MAGIC_V1:
        body_end = entry.body_at + body_size
        properties_at = body_end + packed[body_end] + envelope.V1_SIZES
        properties = bytes(packed[properties_at : size - CHECKSUM_SIZE])
        assert properties == envelope.properties_of(packed, entry)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("topic", [b"orders", b"o" * 200])
def test_a_message_made_from_a_frame_is_read_as_it_was_made(
    shape: tuple[int, bool, bool], topic: bytes
) -> None:
    entry = envelope.read(example(*shape).pack())
    frame = envelope.MessageFrame(entry, topic)
    body, properties = b"a body", b"KEYS\x01one\x02"
    tail = frame.topic + envelope.pack_size(len(properties)) + properties
    size = frame.size + len(body) + len(tail)
    crc = envelope.body_checksum(body)
    changing = (size, frame.magic, crc, frame.queue, 41, 9, frame.flags, 123, frame.rest, len(body))
    made = frame.pack(*changing) + body + tail
    layout = LAYOUTS[envelope.topic_magic(topic), shape[1], shape[2]]
    read = layout.parse(made)
    assert (read.queue_offset, read.position, read.born_ms) == (41, 9, 123)
    assert (read.store_ms, bytes(read.store_host)) == (entry.store_ms, entry.store_host)
    assert frame.properties(memoryview(b"?" + made), 1, 1 + len(made)) == properties
