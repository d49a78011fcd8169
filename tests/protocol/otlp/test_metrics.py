"""Pushed metrics are read whole, bounded, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.otlp.building import attributes, inside, metric, number_point, pushed, word

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.otlp.metrics import ATTRIBUTES_MAX, Bounds, Point, read_metrics
from rockgate.protocol.otlp.wire import MalformedMetrics

RTT = metric("request.latency.avg", number_point(1.5, node="1"), number_point(2.5, node="2"))
TOTAL = metric("request.total", number_point(7), kind=7)


KEYS = [f"k{number}" for number in range(ATTRIBUTES_MAX + 1)]


def test_gauges_and_sums_have_their_attributes_and_those_of_the_resource() -> None:
    assert read_metrics(pushed(RTT, TOTAL, group_id="g")) == [
        Point("request.latency.avg", 1.5, (("group_id", "g"), ("node", "1"))),
        Point("request.latency.avg", 2.5, (("group_id", "g"), ("node", "2"))),
        Point("request.total", 7, (("group_id", "g"),)),
    ]


def test_of_a_histogram_the_count_and_the_sum_are_read() -> None:
    point = inside(1, word(4, 3) + word(5, 4.5) + attributes(9, {"node": "1"}))
    assert read_metrics(pushed(metric("latency", point, kind=9))) == [
        Point("latency.count", 3, (("node", "1"),)),
        Point("latency.sum", 4.5, (("node", "1"),)),
    ]


def test_unknown_fields_and_points_without_a_value_are_passed_over() -> None:
    odd = metric("odd", inside(1, word(2, 5)), inside(9, b"new"))
    assert read_metrics(pushed(odd, TOTAL) + inside(77, b"later")) == [Point("request.total", 7)]
    assert read_metrics(b"") == []


def test_attributes_of_other_types_are_written_as_text() -> None:
    def pair(key: str, value: bytes) -> bytes:
        return inside(7, inside(1, key.encode()) + inside(2, value))

    values = pair("a", b"\x10\x01") + pair("b", b"\x18" + b"\xff" * 9 + b"\x01")
    values += pair("c", word(4, 0.5)) + pair("d", inside(5, b""))
    (point,) = read_metrics(pushed(metric("m", inside(1, word(6, 1) + values))))
    assert point.attributes == (("a", "true"), ("b", "-1"), ("c", "0.5"), ("d", ""))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05abc", "has 5 bytes"),
        (b"\x0a" + b"\xff" * 11, "does not end"),
        (b"\x0b", "wire type 3"),
        (b"\x08\x01", "number stands"),
        (pushed(metric("")), "no name"),
        (pushed(metric("m" * 513)), "513 of 512"),
        (pushed(inside(1, b"\xff\xfe")), "not UTF-8"),
        (pushed(metric("m", inside(1, inside(4, b"1234")))), "4 bytes instead of 8"),
        (
            pushed(metric("m", number_point(1, **dict.fromkeys(KEYS, "")))),
            "more than 32 attributes",
        ),
    ],
)
def test_what_is_no_metrics_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMetrics, match=reason):
        read_metrics(data)


@pytest.mark.row("TEL-1")
def test_fields_and_points_are_limited() -> None:
    many = pushed(metric("m", *(number_point(1) for _ in range(11))))
    assert len(read_metrics(many, Bounds(points_max=11))) == 11
    with pytest.raises(MalformedMetrics, match="more than 10 points"):
        read_metrics(many, Bounds(points_max=10))
    with pytest.raises(MalformedMetrics, match="more fields"):
        read_metrics(b"\x12\x00" * 2_000, Bounds(fields_max=1_000))


@pytest.mark.row("TEL-1")
def test_attributes_of_a_resource_are_limited_however_many_parts_it_has() -> None:
    # They are in each of thousands of points: without a limit, one push takes gigabytes.
    parts = b"".join(inside(1, attributes(1, {f"k{number}": "v"})) for number in range(33))
    with pytest.raises(MalformedMetrics, match="more than 32 attributes"):
        read_metrics(inside(1, parts + inside(2, inside(2, TOTAL))))


@pytest.mark.row("TEL-1")
def test_the_attributes_of_a_point_have_a_size_in_all() -> None:
    large = {f"k{number}": "v" * 500 for number in range(5)}
    with pytest.raises(MalformedMetrics, match="attributes of a point have 2,510 of 2,048 bytes"):
        read_metrics(pushed(metric("m", number_point(1, **large))))
    with pytest.raises(MalformedMetrics, match="attributes of a point have"):
        read_metrics(pushed(TOTAL, **large))
    few = dict(list(large.items())[:4])
    assert len(read_metrics(pushed(metric("m", number_point(1, **few))))) == 1


@given(st.binary(max_size=200))
def test_no_bytes_are_another_error(data: bytes) -> None:
    try:
        read_metrics(data)
    except ProtocolError as error:
        assert str(error).endswith(".")


@given(st.integers(0, len(pushed(RTT, TOTAL)) - 1), st.integers(0, 255))
def test_no_changed_byte_is_another_error(at: int, byte: int) -> None:
    data = bytearray(pushed(RTT, TOTAL))
    data[at] = byte
    try:
        read_metrics(bytes(data))
    except ProtocolError as error:
        assert str(error).endswith(".")
