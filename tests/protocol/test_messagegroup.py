"""Messages packed in one pass: the same bytes as one by one."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.test_entry import int32, int64

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BORN_HOST_V6, CONTINUES, STORE_HOST_V6

properties = st.lists(st.sampled_from([b"KEYS\x01a b\x02", b"TAGS\x01%\x02"]), max_size=3)
contents = st.tuples(int32, st.binary(max_size=60), properties.map(b"".join))


contents_alike = st.lists(
    st.tuples(
        int32, st.binary(min_size=9, max_size=9), st.sampled_from([b"K\x01a\x02", b"K\x01b\x02"])
    ),
    min_size=1,
    max_size=6,
)


@given(
    st.lists(contents, min_size=1, max_size=6) | contents_alike,
    st.sampled_from([b"orders", b"100%", b"t" * 127, b"t" * 128]),
    st.sampled_from([0, 1, CONTINUES, BORN_HOST_V6, STORE_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6]),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    int64,
    int64,
)
@settings(deadline=None, max_examples=budget("entry_examples"))
def test_messages_packed_together_are_those_packed_one_by_one(
    given: list[tuple[int, bytes, bytes]],
    topic: bytes,
    sys_flag: int,
    queue_id: int,
    offset: int,
    position: int,
    born_ms: int,
    store_ms: int,
) -> None:
    born_host = bytes(range(20 if sys_flag & BORN_HOST_V6 else 8))
    store_host = bytes(range(1, 21 if sys_flag & STORE_HOST_V6 else 9))
    fixed = envelope.envelope_size(topic, sys_flag)
    sizes = [fixed + len(body) + len(packed) for _, body, packed in given]
    wanted = b""
    for index, ((flag, body, packed), size) in enumerate(zip(given, sizes, strict=True)):
        continues = CONTINUES if index < len(given) - 1 else 0
        magic = envelope.topic_magic(topic)
        head = envelope.pack_head(
            total_size=size,
            magic=magic,
            body_crc=envelope.body_checksum(body),
            queue_id=queue_id,
            flag=flag,
            queue_offset=offset + index,
            position=position + len(wanted),
            sys_flag=sys_flag & ~CONTINUES | continues,
            born_ms=born_ms,
            born_host=born_host,
            store_ms=store_ms,
            store_host=store_host,
            reconsume_times=0,
            prepared_offset=0,
            body_size=len(body),
        )
        wanted += head + body + envelope.pack_tail(head, topic, packed, magic)
    columns = envelope.Contents.of(given)
    is_alike = len({(len(body), len(packed)) for _, body, packed in given}) == 1
    found = envelope.pack_messages(
        columns._replace(is_alike=is_alike),
        sizes,
        accumulate(sizes, initial=position),
        topic=topic,
        queue_id=queue_id,
        offset=offset,
        sys_flag=sys_flag,
        born_ms=born_ms,
        born_host=born_host,
        store_ms=store_ms,
        store_host=store_host,
    )
    assert found == wanted
    assert len(found) == sum(sizes)
