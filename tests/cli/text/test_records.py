import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.cli.client.produce.producer import Outgoing
from rockgate.cli.text import records
from rockgate.protocol.kafka.records.record import Record

RECORD = Record(7, 1_700_000_000_123, b"key", b"value", (("h", b"1"), ("n", None)))


def line(record: Record) -> bytes:
    return records.json_line("t", 3, record, is_append_time=False)


def test_a_json_line_has_everything() -> None:
    assert json.loads(line(RECORD)) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp_ms": 1_700_000_000_123,
        "timestamp_type": "create",
        "key": "key",
        "value": "value",
        "headers": [{"key": "h", "value": "1"}, {"key": "n", "value": None}],
    }


def test_what_is_not_utf_8_is_in_base64_under_another_name() -> None:
    told = json.loads(line(Record(0, 0, None, b"\xff\x00", (("h", b"\xfe"),))))
    assert told["key"] is None
    assert "value" not in told
    assert told["value_base64"] == "/wA="
    assert told["headers"] == [{"key": "h", "value_base64": "/g=="}]


datas = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


@given(
    key=datas,
    value=datas,
    headers=st.lists(st.tuples(st.text(max_size=9), datas), max_size=3).map(tuple),
    time=st.integers(0, 1 << 50),
)
@settings(max_examples=budget("property_examples"), deadline=None)
def test_no_byte_is_lost_between_consume_and_produce(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    time: int,
) -> None:
    told = line(Record(0, time, key, value, headers))
    assert told.count(b"\n") == 1
    assert records.from_json_line(told) == Outgoing(key, value, headers, None, time)


def test_a_partition_is_kept_only_where_that_is_asked_for() -> None:
    assert records.from_json_line(line(RECORD)).partition is None
    assert records.from_json_line(line(RECORD), keeps_partition=True).partition == 3


def test_a_json_line_written_by_hand_may_be_short() -> None:
    assert records.from_json_line(b'{"value": "x", "note": 1}') == Outgoing(None, b"x")
    assert records.from_json_line(b'{"key": "k"}') == Outgoing(b"k", None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "is not a JSON record"),
        (b"[]", "is not a JSON record"),
        (b'{"value": 5}', "is not a JSON record"),
        (b'{"value": "x", "value_base64": "eA=="}', "has both value and value_base64"),
        (b'{"value_base64": "?"}', "has invalid base64 in value_base64"),
        (b"\xff", "is not a JSON record"),
    ],
)
def test_a_line_that_is_no_record_is_said(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        records.from_json_line(text)


def test_a_line_is_a_value_or_a_key_and_a_value() -> None:
    assert records.from_line(b"a:b") == Outgoing(None, b"a:b")
    assert records.from_line(b"a:b:c", separator=b":") == Outgoing(b"a", b"b:c")
    assert records.from_line(b"", empty_is_null=True) == Outgoing(None, None)
    assert records.from_line(b"k:", separator=b":", empty_is_null=True) == Outgoing(b"k", None)
    assert records.from_line(b"") == Outgoing(None, b"")
    with pytest.raises(ValueError, match="has no key separator ':'"):
        records.from_line(b"abc", separator=b":")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%v\n", b"value\n"),
        (r"%t/%p@%o %k=%v", b"t/3@7 key=value"),
        (r"%h|%T|%d", b"h=1,n=null|1700000000123|2023-11-14T22:13:20.123Z"),
        (r"%K %V %S %%\t\x00\\", b"3 5 5 %\t\x00\\"),
        (r"plain \q", rb"plain \q"),
    ],
)
def test_a_format_says_how_a_record_is_printed(text: str, expected: bytes) -> None:
    assert records.formatted(records.parse_format(text), "t", 3, RECORD) == expected


def test_null_is_printed_as_a_word() -> None:
    pieces = records.parse_format("%k %v %K")
    assert records.formatted(pieces, "t", 0, Record(0, 0, None, None)) == b"null null -1"


@pytest.mark.parametrize("text", ["%x", "50%"])
def test_a_token_that_means_nothing_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="unknown field"):
        records.parse_format(text)
