import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol import entry as envelope
from rockgate.protocol.remoting.compression import Compression, compress
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.message import (
    Message,
    decode,
    decode_all,
    decode_batch,
    encode,
    encode_batch,
)

V4 = envelope.pack_host(bytes([192, 0, 2, 7]), 50001)
V6 = envelope.pack_host(bytes.fromhex("20010db8000000000000000000000007"), 50001)
STORE = envelope.pack_host(bytes([192, 0, 2, 1]), 10911)


def packed(**changes: object) -> bytes:
    values = {
        "topic": b"orders",
        "body": b"hello",
        "properties": b"TAGS\x01a\x02",
        "queue_id": 3,
        "queue_offset": 17,
        "position": 4096,
        "born_ms": 1000,
        "born_host": V4,
        "store_ms": 2000,
        "store_host": STORE,
        **changes,
    }
    return encode(**values)  # type: ignore[arg-type]


def test_a_message_comes_back() -> None:
    data = packed(flag=7, reconsume_times=2, prepared_offset=9)
    message = decode(data)
    assert message == Message(
        topic="orders",
        body=b"hello",
        properties={"TAGS": "a"},
        flag=7,
        queue_id=3,
        queue_offset=17,
        position=4096,
        born_ms=1000,
        born_host=(bytes([192, 0, 2, 7]), 50001),
        store_ms=2000,
        store_host=(bytes([192, 0, 2, 1]), 10911),
        reconsume_times=2,
        prepared_offset=9,
        body_crc=envelope.body_checksum(b"hello"),
        size=len(data),
    )
    assert message.offset_message_id == message.message_id == "C000020100002A9F0000000000001000"


def test_an_entry_of_the_log_is_a_message_and_its_checksum_no_property() -> None:
    topic, body, properties = b"orders", b"hello", b"TAGS\x01a\x02"
    tail = envelope.tail_size(topic, properties, envelope.MAGIC_V1)
    head = envelope.pack_head(
        total_size=envelope.head_size(0) + len(body) + tail,
        magic=envelope.MAGIC_V1,
        body_crc=envelope.body_checksum(body),
        queue_id=3,
        flag=0,
        queue_offset=17,
        position=4096,
        sys_flag=0,
        born_ms=1,
        born_host=V4,
        store_ms=2,
        store_host=STORE,
        reconsume_times=0,
        prepared_offset=0,
        body_size=len(body),
    )
    data = head + body + envelope.pack_tail(head, topic, properties, envelope.MAGIC_V1)
    assert decode(data).properties == {"TAGS": "a"}


def test_a_long_topic_and_an_ipv6_host_have_their_own_widths() -> None:
    data = packed(topic=b"t" * 200, born_host=V6, sys_flag=envelope.BORN_HOST_V6)
    message = decode(data)
    assert (message.topic, message.born_host) == ("t" * 200, (V6[:16], 50001))


@pytest.mark.parametrize("kind", list(Compression))
def test_a_compressed_body_is_opened(kind: Compression) -> None:
    body = compress(b"hello " * 1000, kind)
    data = packed(body=body, sys_flag=envelope.COMPRESSED | kind)
    assert decode(data).body == b"hello " * 1000


def test_messages_follow_one_another() -> None:
    data = packed(body=b"1") + packed(body=b"22") + packed(body=b"333")
    assert [message.body for message in decode_all(data)] == [b"1", b"22", b"333"]


def test_what_all_bodies_become_together_is_bounded() -> None:
    big = packed(body=compress(bytes(60_000), Compression.ZLIB), sys_flag=1 | Compression.ZLIB)
    assert len(list(decode_all(big * 2, size_max=120_000))) == 2
    with pytest.raises(MalformedContent, match="exceeds the maximum"):
        list(decode_all(big * 3, size_max=120_000))


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_a_message_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(MalformedContent, match="Message at byte 0 is invalid"):
        decode(packed()[:cut])


def test_a_batch_entry_is_no_message() -> None:
    data = bytearray(packed(topic=b"x" * 200, properties=b"INNER_NUM\x010000000003\x02"))
    data[4:8] = envelope.MAGIC_BATCH.to_bytes(4, "big")
    with pytest.raises(MalformedContent, match="is a batch"):
        decode(bytes(data))


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(MalformedContent, match="Unknown compression type 7"):
        decode(packed(sys_flag=envelope.COMPRESSED | 7 << 8))


# Batch sends


def opened(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Flag, body and properties of each message of a batch."""
    rows = zip(*decode_batch(data)[:3], strict=True)
    return [(flag, bytes(body), properties) for flag, body, properties in rows]


@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50), st.binary(max_size=50)),
        max_size=5,
    )
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_batch_comes_back(messages: list[tuple[int, bytes, bytes]]) -> None:
    assert opened(encode_batch(messages)) == messages


@given(
    st.integers(1, 20),
    st.integers(0, 30),
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2),
)
@settings(deadline=None, max_examples=4 * budget("property_examples"))
def test_messages_that_are_alike_are_read_as_those_that_are_not(
    count: int, body_size: int, properties_size: int, flips: list[tuple[int, int]]
) -> None:
    """One more message of another size makes each be looked at for itself, damaged or not."""
    alike = bytearray(
        encode_batch([(n, bytes([n]) * body_size, b"p" * properties_size) for n in range(count)])
    )
    for at, value in flips:
        alike[at % len(alike)] = value
    other = encode_batch([(9, b"x" * (body_size + 1), b"p" * properties_size)])

    def read(data: bytes) -> list[tuple[int, bytes, bytes]] | str:
        try:
            return opened(data)
        except MalformedContent:
            return "refused"

    wanted = read(bytes(alike + other))
    if wanted != "refused" and wanted[-1] != (9, b"x" * (body_size + 1), b"p" * properties_size):
        return  # what was damaged reaches into the other one
    assert read(bytes(alike)) == (wanted if wanted == "refused" else wanted[:-1])


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_bytes_are_a_batch_or_refused(data: bytes) -> None:
    try:
        found = opened(data)
    except MalformedContent:
        return
    assert encode_batch(found)[:4] == data[:4]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0", "Message 0 of the batch is truncated at byte 0"),
        (bytes(22), "Message 0 of the batch has size 0 at byte 0"),
        (b"\0\0\0\x17" + bytes(18), "Message 0 of the batch has size 23 at byte 0"),
        (
            b"\0\0\0\x16" + bytes(12) + b"\0\0\0\1" + bytes(2),
            "Message 0 of the batch has a body of 1 bytes",
        ),
        (
            b"\0\0\0\x16" + bytes(12) + b"\xff\xff\xff\xff" + bytes(2),
            "Message 0 of the batch has size 22",
        ),
        (b"\0\0\0\x16" + bytes(16) + b"\0\1", "Message 0 of the batch has properties of 1 bytes"),
    ],
)
def test_a_batch_that_lies_is_refused_with_the_place(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedContent, match=reason):
        decode_batch(data)


def test_the_count_of_a_batch_is_bounded() -> None:
    with pytest.raises(MalformedContent, match="more than 2 messages"):
        decode_batch(encode_batch([(0, b"", b"")] * 3), count_max=2)
