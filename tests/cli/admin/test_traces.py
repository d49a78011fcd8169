"""Traces as RocketMQ's clients write them, and text that is none.

The records have the fields of Apache RocketMQ's client 5.5.0, and of 4.9.7 where it has fewer.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rockgate.cli.admin.traces import RECORDS_MAX, read

ID = "7F00000100002A9F0000000000000001"
PUB = ("Pub", "1000", "Default", "shop", "orders", ID, "red", "k1", "127.0.0.1:10911", "5", "3")


def record(*fields: str) -> bytes:
    return ("\x01".join(fields) + "\x02").encode()


def test_a_send() -> None:
    (sent,) = read(record(*PUB, "3", "0AEE", "true"), ID)
    assert (sent.what, sent.at_ms, sent.group) == ("sent", 1000, "shop")
    assert (sent.host, sent.cost_ms, sent.is_success) == ("127.0.0.1:10911", 3, True)
    assert sent.detail == "delayed"


def test_a_send_of_an_earlier_client() -> None:
    (sent,) = read(record(*PUB, "0", "false"), ID)
    assert (sent.is_success, sent.detail) == (False, "normal")


def test_a_delivery_and_its_outcome() -> None:
    body = record("SubBefore", "2000", "Default", "billing", "req-1", ID, "2", "k1")
    body += record("SubAfter", "req-1", ID, "15", "false", "k1", "1", "2016", "billing")
    begun, done = read(body, ID)
    assert (begun.what, begun.at_ms, begun.tries) == ("delivered", 2000, 2)
    assert (done.what, done.at_ms, done.cost_ms, done.is_success) == ("consumed", 2016, 15, False)


def test_an_outcome_without_time_ends_after_it_took() -> None:
    body = record("SubBefore", "2000", "Default", "billing", "req-1", ID, "0", "k1")
    body += record("SubAfter", "req-1", ID, "15", "true", "k1", "0")
    assert [(each.at_ms, each.group) for each in read(body, ID)] == [
        (2000, "billing"),
        (2015, "billing"),
    ]


def test_the_end_of_a_transaction_and_a_recall() -> None:
    ended = record(
        *("EndTransaction", "5", "Default", "shop", "orders", ID, "", "k1", "b:1", "2", "t-1"),
        *("COMMIT_MESSAGE", "false"),
    )
    (trace,) = read(ended, ID)
    assert (trace.what, trace.detail) == ("transaction ended", "commit message")
    (recall,) = read(record("Recall", "6", "Default", "shop", "orders", ID, "true"), ID)
    assert (recall.what, recall.is_success) == ("recalled", True)


def test_records_about_other_messages_are_left_out() -> None:
    assert read(record(*PUB, "0", "true"), "another") == []


def test_a_trace_is_bounded() -> None:
    assert len(read(record(*PUB, "0", "true") * (2 * RECORDS_MAX), ID)) == RECORDS_MAX


@given(st.binary(max_size=300))
def test_any_bytes_are_read(body: bytes) -> None:
    read(b"Pub\x01" + body, ID)
    read(b"SubAfter\x01" + body, "")
