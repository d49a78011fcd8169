"""Pop's texts: handles, offsets of queues, and batches of acknowledgements."""

from __future__ import annotations

import base64
import json

import pytest

from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import BINARY, JSON, Command, encode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.hot.answers import succeeded
from rockgate.protocol.remoting.pop import (
    OFFSETS_MAX,
    Acquired,
    Handle,
    message_offset_info,
    order_count_info,
    read_batch_ack,
    read_handle,
    retry_topic,
    start_offset_info,
    topic_of,
    write_handle,
)

HANDLE = Handle(17, 1_700_000_000_000, 60_000, 0, "0", "broker-a", 3)
TEXT = "17 1700000000000 60000 0 0 broker-a 3 19"


def test_a_handle_is_read_as_it_is_written() -> None:
    assert write_handle(HANDLE, 19) == TEXT
    assert read_handle(TEXT, "ACK_MESSAGE") == HANDLE
    assert HANDLE.deadline_ms == 1_700_000_060_000


def test_a_handle_of_an_early_client_has_no_offset() -> None:
    assert read_handle(TEXT.rsplit(" ", 1)[0], "ACK_MESSAGE") == HANDLE


def test_a_handle_says_whether_it_is_in_order() -> None:
    assert not HANDLE.is_ordered
    assert HANDLE._replace(revive_queue=999).is_ordered


@pytest.mark.parametrize(
    "text",
    ["", " ", TEXT.replace("17 ", "x "), TEXT + " 1", "1 2", TEXT.replace(" 3 19", " 3 \u0661")],
)
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(MalformedRequest):
        read_handle(text, "ACK_MESSAGE")


def test_topics_of_handles_are_named_as_rocketmq_names_them() -> None:
    assert retry_topic("orders", "g") == topic_of("orders", "g", "1") == "%RETRY%g_orders"
    assert topic_of("orders", "g", "2") == "%RETRY%g+orders"
    assert topic_of("orders", "g", "0") == "orders"


def test_offsets_are_reported_by_queue() -> None:
    acquired = [Acquired("0", 1, 5, [5, 7], [0, 2]), Acquired("1", 0, 9, [9], [1])]
    assert start_offset_info(acquired) == "0 1 5;1 0 9"
    assert message_offset_info(acquired) == "0 1 5,7;1 0 9"
    assert order_count_info(acquired) == "0 qo1%7 2;0 1 0;1 qo0%9 1;1 0 1"


def ack(bits: bytes, **more: object) -> dict[str, object]:
    known = {"c": "g", "t": "orders", "r": "0", "so": 10, "q": 1, "rq": 0, "pt": 5, "it": 6}
    return {**known, "b": base64.b64encode(bits).decode(), **more}


def body(*acks: dict[str, object]) -> bytes:
    return json.dumps({"brokerName": "b", "acks": acks}).encode()


def test_bits_are_offsets_from_the_first_one_on() -> None:
    [(read, offsets)] = read_batch_ack(body(ack(bytes((0b1000_0001, 0b10)))))
    assert offsets == [10, 17, 19]
    assert (read.consumer_group, read.topic, read.queue_id) == ("g", "orders", 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"acks":[{}]}',
        body(ack(b"", b="%%%")),
        body(ack(b"\1" * 65)),
        body(*[ack(b"\xff" * 64)] * (OFFSETS_MAX // 512 + 1)),
    ],
)
def test_a_batch_that_cannot_be_read_or_is_too_large_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_batch_ack(data)


@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_a_success_without_fields_is_written_as_the_declared_codec_does(encoding: int) -> None:
    declared = Command(0, opaque=77, flag=RESPONSE_FLAG, encoding=encoding)
    assert succeeded(encoding, 77) == encode(declared)
