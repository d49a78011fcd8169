from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.kafka.world import KafkaWorld
from tests.gateway.transcode.decoding import pulled
from tests.gateway.transcode.strategies import batches, texts
from tests.store.reading import entries
from tests.world import NOW_MS

from rockgate.gateway.transcode.batches import BatchCache, BatchTranscoder
from rockgate.gateway.transcode.compressed_bodies import INFLATED_BYTES_MAX
from rockgate.gateway.transcode.dictionary import read_message
from rockgate.gateway.transcode.messages import Messages
from rockgate.protocol.entry import BORN_HOST_V6, COMPRESSED, MOVED, pack_properties
from rockgate.protocol.kafka.records.batch import Compression, check, stamp
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.store.log.commitlog import NO_HOST, Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueruns import Indexes
from rockgate.store.read.slices import Slice

QUEUE = Queue(b"orders", bytes(16), 0, Indexes())
"""The readers notified when a thread has opened a body, which happens in none of these."""


def record_of(properties: dict[str, str], sys_flag: int = 0, body: bytes = b"body") -> Record:
    world = KafkaWorld()
    world.topic()
    packed = pack_properties(properties.items())
    draft = Draft(b"", 0, 0, body, packed, born_ms=NOW_MS, sys_flag=sys_flag)
    world.store.appender.message(world.queue(), draft)
    run = world.store.reader.messages(
        world.queue(), 0, 1 << 62, 1 << 30, at_least_one=True, cold=None
    )
    batch, count = BatchTranscoder().batch(world.queue(), run, 7)
    assert count == 1
    assert check(batch).leader_epoch == 7
    [record] = read_records(batch)
    return record


def test_a_message_is_a_record_with_its_time_its_body_its_key_and_its_properties() -> None:
    record = record_of({"KEYS": "order-1", "TAGS": "paid", "who": "me"})
    assert record == Record(0, NOW_MS, b"order-1", b"body", (("TAGS", b"paid"), ("who", b"me")))


def test_a_message_without_keys_has_no_key() -> None:
    assert record_of({}).key is None


@pytest.mark.parametrize("name", ["__TID", "__RMAX", "__EPOCH"])
def test_what_the_store_gave_a_moved_entry_is_no_header(name: str) -> None:
    assert record_of({name: "1", "who": "me"}, MOVED).headers == (("who", b"me"),)


def test_bytes_that_are_no_text_come_through_in_a_value_and_are_replaced_in_a_name() -> None:
    record = record_of({"n\udcff": "v\udcff", "KEYS": "k\udcff"})
    assert record.headers == (("n\ufffd", b"v\xff"),) and record.key == b"k\xff"


# Runs


class Sent(NamedTuple):
    """A message as a client sends it."""

    body: bytes
    properties: bytes = b""
    sys_flag: int = 0
    born_ms: int = NOW_MS
    born_host: bytes = NO_HOST


def run_of(sent: Sequence[Sent]) -> list[Slice]:
    world = KafkaWorld()
    world.topic()
    for body, properties, sys_flag, born_ms, born_host in sent:
        draft = Draft(
            b"", 0, 0, body, properties, born_ms=born_ms, sys_flag=sys_flag, born_host=born_host
        )
        world.store.appender.message(world.queue(), draft)
    return world.store.reader.messages(
        world.queue(), 0, 1 << 62, 1 << 30, at_least_one=True, cold=None
    )


def records_of(sent: Sequence[Sent]) -> list[Record]:
    batch, count = BatchTranscoder().batch(QUEUE, run_of(sent), 3)
    assert count == len(sent)
    header = check(batch)
    assert (header.base_offset, header.record_count) == (0, len(sent))
    assert header.max_timestamp == max(each.born_ms for each in sent)
    assert not header.has_producer_id
    return read_records(batch)


names_and_values = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "WAIT", "__KAFKA_NULL"]), texts),
        st.one_of(texts, st.sampled_from(["1", "a b", " "])),
    ),
    max_size=5,
)
messages = st.builds(
    lambda body, pairs, rest, flag, born_ms: Sent(
        body,
        b"".join(f"{name}\x01{value}\x02".encode() for name, value in pairs) + rest,
        flag & ~COMPRESSED,
        born_ms,
        bytes(20) if flag & BORN_HOST_V6 else NO_HOST,
    ),
    st.binary(max_size=40),
    names_and_values,
    st.sampled_from([b"", b"rest", b"\x02", b"\xff\x01\xff\x02"]),
    st.sampled_from([0, MOVED, BORN_HOST_V6]),
    st.integers(0, 1 << 45),
)


@given(st.lists(messages, min_size=1, max_size=8))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_run_of_any_messages_is_what_the_dictionary_says(sent: list[Sent]) -> None:
    for offset, (record, each) in enumerate(zip(records_of(sent), sent, strict=True)):
        words = read_message(each.properties)
        headers = tuple((name.decode(), value) for name, value in words.headers)
        value = None if words.is_null else each.body
        assert record == Record(offset, each.born_ms, words.key, value, headers)


@pytest.mark.parametrize("size", [1, 8, 24, 32, 56])
@pytest.mark.parametrize("digits", [(b"0", b"1"), (b"@", b"A"), (b"p", b"q"), (b"\x10", b"\x11")])
def test_ids_that_look_like_what_is_around_them_stay_where_they_are(
    size: int, digits: tuple[bytes, bytes]
) -> None:
    first, second = (
        Sent(b"body", b"a\x0110\x02UNIQ_KEY\x01%b\x02WAIT\x01true\x02" % (digit * size))
        for digit in digits
    )
    for record, digit in zip(records_of([first, second, first]), [*digits, digits[0]], strict=True):
        assert record.headers == (("a", b"10"), ("UNIQ_KEY", digit * size), ("WAIT", b"true"))


@given(batches(), st.sampled_from(list(Compression)))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_records_that_were_copied_as_messages_are_the_same_records_again(
    records: list[Record], compression: Compression
) -> None:
    """A record read by RocketMQ's side and sent to another topic, as a send-back does it."""
    world = KafkaWorld()
    world.topic()
    body = build_batch(records, base_offset=0, compression=compression)
    world.store.appender.batch(
        world.queue(),
        body,
        count=len(records),
        record_ms=1,
        stamp=lambda view, offset: stamp(view, offset, 1),
    )
    [found] = entries(world.store, world.queue(), 0, 1 << 30)
    cut = Messages.open(found.entry, message_bytes_max=1 << 24).select(
        0, count_max=99, size_max=1 << 30
    )
    copies = [
        Sent(each.body, each.properties, born_ms=each.entry.born_ms) for each in pulled(cut.buffers)
    ]
    assert records_of(copies) == records


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        (0, zlib.compress(b"body" * 100)),
        (3, zlib.compress(b"body" * 100)),
        (1, bytes(cramjam.lz4.compress(b"body" * 100))),
        (2, bytes(cramjam.zstd.compress(b"body" * 100))),
    ],
)
def test_a_compressed_body_is_opened(codec: int, compressed: bytes) -> None:
    [record] = records_of([Sent(compressed, b"", COMPRESSED | codec << 8)])
    assert record.value == b"body" * 100


@pytest.mark.parametrize("codec", [0, 1, 2, 5])
def test_a_body_that_cannot_be_opened_is_given_as_it_is_with_its_flags(codec: int) -> None:
    flags = COMPRESSED | codec << 8
    [record] = records_of([Sent(b"no such thing", b"a\x01b\x02", flags)])
    assert record.value == b"no such thing"
    assert record.headers == (("a", b"b"), ("__ROCKETMQ_COMPRESSED", b"%d" % flags))


def test_an_empty_body_is_an_empty_value_and_a_marked_one_is_null() -> None:
    sent = [Sent(b""), Sent(b"", b"__KAFKA_NULL\x011\x02"), Sent(b"x", b"__KAFKA_NULL\x011\x02")]
    assert [record.value for record in records_of(sent)] == [b"", None, None]


def test_a_topic_over_127_bytes_is_read_as_any_other() -> None:
    world = KafkaWorld()
    world.topic("t" * 200)
    world.message("t" * 200, properties={"KEYS": "k"})
    run = world.store.reader.messages(
        world.queue("t" * 200), 0, 1 << 62, 1 << 30, at_least_one=True, cold=None
    )
    [record] = read_records(BatchTranscoder().batch(QUEUE, run, 1)[0])
    assert (record.key, record.value) == (b"k", b"message")


def test_a_batch_of_compressed_bodies_ends_when_enough_came_out() -> None:
    body = zlib.compress(bytes(INFLATED_BYTES_MAX // 2))
    run = run_of([Sent(body, b"", COMPRESSED)] * 5)
    batch, count = BatchTranscoder().batch(QUEUE, run, 1)
    assert (count, check(batch).record_count) == (2, 2)
    batch, count = BatchTranscoder().batch(QUEUE, run[count:], 1)
    assert [record.offset for record in read_records(batch)] == [2, 3]


IDS = [f"{number:032X}" for number in range(3)]
shaped = st.builds(
    lambda before, name, value, behind: f"{before}{name}\x01{value}\x02{behind}".encode(),
    st.sampled_from(["", "WAIT\x01true\x02", "x", "a\x01" + IDS[0] + "\x02", "KEYS\x01k v\x02"]),
    st.sampled_from(["UNIQ_KEY", "xUNIQ_KEY", "UNIQ_KEY" + IDS[0]]),
    st.sampled_from([*IDS, IDS[0][:-1], IDS[0] + "0", "a\x02" + "b" * 28 + "\x01d", "k"]),
    st.sampled_from(["", "WAIT\x01true\x02", "\x02WAIT\x01true\x02", "UNIQ_KEY\x01" + IDS[1]]),
)


@given(st.lists(shaped, min_size=2, max_size=12))
@settings(deadline=None, max_examples=4 * budget("property_examples"))
def test_messages_that_differ_in_little_but_their_ids_are_what_the_dictionary_says(
    given: list[bytes],
) -> None:
    """What is remembered of one message's properties is used for another's only if it fits."""
    for record, properties in zip(
        records_of([Sent(b"x", each) for each in given]), given, strict=True
    ):
        words = read_message(properties)
        headers = tuple((name.decode(), value) for name, value in words.headers)
        assert (record.key, record.headers) == (words.key, headers)


def test_names_of_headers_are_not_kept_without_bound() -> None:
    transcoding = BatchTranscoder()
    names = [
        Sent(b"", b"".join(b"n%d\x01v\x02" % (at + step) for step in range(900)))
        for at in range(0, 9000, 900)
    ]
    for _ in range(2):
        batch, _ = transcoding.batch(QUEUE, run_of(names), 1)
        assert [len(record.headers) for record in read_records(batch)] == [900] * 10


@pytest.mark.parametrize("ends", [(-(2**63), 2**63 - 1), (2**63 - 1, -(2**63)), (-(2**63), 0)])
def test_times_that_are_too_far_apart_are_of_two_batches(ends: tuple[int, int]) -> None:
    sent = [Sent(b"first", born_ms=ends[0]), Sent(b"second", born_ms=ends[1])]
    run = run_of(sent)
    batch, count = BatchTranscoder().batch(QUEUE, run, 3)
    assert (count, [(r.timestamp, r.value) for r in read_records(batch)]) == (
        1,
        [(ends[0], b"first")],
    )
    batch, count = BatchTranscoder().batch(QUEUE, run[1:], 3)
    assert [(r.timestamp, r.value) for r in read_records(batch)] == [(ends[1], b"second")]


# Batches that were made


def test_a_batch_that_was_made_is_cached_with_the_offset_behind_it() -> None:
    cache = BatchCache(30, batch_bytes_min=5)
    for position in (1, 2, 3):
        cache.put(position, bytearray(10), position + 100)
    assert cache.get(1) == (bytearray(10), 101)
    cache.put(4, bytearray(10), 104)
    assert [position for position in (1, 2, 3, 4) if cache.get(position) is not None] == [1, 3, 4]


def test_batches_that_are_small_or_larger_than_the_bound_are_not_cached() -> None:
    cache = BatchCache(30, batch_bytes_min=5)
    cache.put(1, bytearray(4), 2)
    cache.put(2, bytearray(31), 3)
    assert (cache.get(1), cache.get(2)) == (None, None)
