"""Whole batches as messages: what comes back is what was sent, at its offsets; damage is named."""

from __future__ import annotations

import pytest
from tests.gateway.transcode.remote.test_pulled_messages import message
from tests.gateway.transcode.remote.test_sent_records import BORN_MS

from rockgate.gateway.rocketmq.queues.batch_marks import BatchMark, find_marks
from rockgate.gateway.transcode.remote.pulled_messages import PulledBatch, PulledMessages
from rockgate.gateway.transcode.remote.sent_records import MESSAGES_MAX, REQUEST_BYTES_MAX
from rockgate.gateway.transcode.remote.whole_batches import SYS_FLAG, to_whole
from rockgate.protocol.entry import EntryError
from rockgate.protocol.kafka.errors import BatchTooLarge
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.remoting.message import encode_batch

BASE_ADDED = b"INNER_BASE\x017\x02"
"""What a broker adds."""


def batch(count: int, *, compression: Compression = Compression.NONE, producer: int = -1) -> bytes:
    records = [
        Record(at, BORN_MS + at, b"k", b"value %d" % at, (("h", b"x"),)) for at in range(count)
    ]
    return bytes(
        build_batch(
            records,
            base_offset=0,
            compression=compression,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=16 if producer >= 0 else -1,
        )
    )


def stored(body: bytes, offset: int) -> bytes:
    """The message of a batch as a broker returns it."""
    made = to_whole(body, read_header(body))
    return message(offset, made.properties.encode() + BASE_ADDED, made.body, sys_flag=SYS_FLAG)


def pulled(data: bytes, offset: int) -> list[PulledBatch]:
    return PulledMessages().batches(data, offset)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_batch_comes_back_as_it_was_sent_at_its_offset(compression: Compression) -> None:
    body = batch(50, compression=compression, producer=255)
    [found] = pulled(stored(body, 1000), 1000)
    assert (found.base, found.end, found.is_inner) == (1000, 1050, True)
    assert read_header(found.data).base_offset == 1000
    # But for the offset and the epoch of its leader it is the same, still compressed.
    assert found.data[16:] == body[16:]
    assert [r.offset for r in read_records(found.data)] == list(range(1000, 1050))


def test_an_offset_in_the_midst_of_a_batch_finds_all_of_it_and_one_behind_it_nothing() -> None:
    data = stored(batch(10), 100)
    assert [each.base for each in pulled(data, 105)] == [100]
    assert pulled(data, 110) == []


def test_batches_and_single_messages_come_back_in_order() -> None:
    data = (
        message(0, b"KEYS\x01a\x02")
        + message(1, b"")
        + stored(batch(5), 2)
        + message(7, b"")
        + stored(batch(3), 8)
    )
    found = pulled(data, 0)
    assert [(each.base, each.end) for each in found] == [(0, 2), (2, 7), (7, 8), (8, 11)]


def test_a_batch_send_of_rocketmq_becomes_records_of_its_own() -> None:
    rows = [(0, b"one", b"KEYS\x01k1\x02"), (0, b"two", b"color\x01red\x02")]
    properties = b"INNER_NUM\x012\x02" + BASE_ADDED
    data = message(40, properties, encode_batch(rows), sys_flag=SYS_FLAG)
    [found] = pulled(data, 41)
    records = read_records(found.data)
    assert [(r.offset, r.key, r.value) for r in records] == [
        (40, b"k1", b"one"),
        (41, None, b"two"),
    ]
    assert records[1].headers == (("color", b"red"),)
    assert records[0].timestamp == BORN_MS


def test_what_is_too_large_for_a_message_is_refused() -> None:
    body = batch(1)
    header = read_header(body)
    with pytest.raises(BatchTooLarge, match="32,768 records"):
        to_whole(body, header._replace(record_count=MESSAGES_MAX + 1))
    with pytest.raises(BatchTooLarge, match="bytes"):
        to_whole(bytes(REQUEST_BYTES_MAX + 1), header)


def test_a_producer_s_batch_is_named_for_those_who_look_for_it() -> None:
    data = stored(batch(5, producer=255), 7) + stored(batch(2), 12)
    found = find_marks(data)
    assert found.batches == [BatchMark(1, 7, 255, 0, 16, 5)]
    assert found.end == 14


@pytest.mark.parametrize(
    ("properties", "body"),
    [
        (b"INNER_NUM\x010\x02__KAFKA_BATCH\x011\x02", batch(1)),
        (b"INNER_NUM\x0199999\x02__KAFKA_BATCH\x011\x02", batch(1)),
        (b"INNER_NUM\x012\x02__KAFKA_BATCH\x011\x02", batch(1)),
        (b"INNER_NUM\x011\x02__KAFKA_BATCH\x011\x02", batch(1)[:-1]),
        (b"INNER_NUM\x011\x02__KAFKA_BATCH\x011\x02", b""),
        (b"INNER_NUM\x013\x02", encode_batch([(0, b"x", b"")])),
        (b"INNER_NUM\x011\x02", b"\x00\x00"),
    ],
)
def test_a_message_that_does_not_hold_what_it_says_is_an_error(
    properties: bytes, body: bytes
) -> None:
    with pytest.raises(EntryError):
        pulled(message(0, properties, body, sys_flag=SYS_FLAG), 0)


def test_a_truncated_message_is_an_error() -> None:
    data = stored(batch(5), 0)
    for size in (1, 50, len(data) - 1):
        with pytest.raises(EntryError):
            pulled(data[:size], 0)
