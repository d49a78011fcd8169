from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.transcode.strategies import headers as any_headers
from tests.gateway.transcode.strategies import keys as any_keys

from rockgate.gateway.transcode.dictionary import (
    DROPPED,
    SIZE_MAX,
    SYSTEM,
    Words,
    pack_record,
    pack_usual,
    read_message,
)
from rockgate.protocol.entry import parse_properties
from rockgate.protocol.kafka.records.record import Header


def properties(
    key: bytes | None = None, headers: tuple[Header, ...] = (), is_null: bool = False
) -> dict[str, str]:
    return parse_properties(pack_record(key, headers, is_null))


def java_sees(packed: bytes) -> list[tuple[bytes, bytes]]:
    """The properties as Java's decoder takes them: empty names and empty values are dropped."""
    parts = [part.partition(b"\x01") for part in packed.split(b"\x02")]
    return [(name, value) for name, separator, value in parts if separator and name and value]


@given(any_keys, any_headers, st.booleans())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_record_that_went_to_the_other_side_comes_back_as_it_was(
    key: bytes | None, headers: tuple[Header, ...], is_null: bool
) -> None:
    words = read_message(pack_record(key, headers, is_null))
    assert words == Words(key, is_null, [(name.encode(), value) for name, value in headers])


@given(any_keys, any_headers, st.booleans())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_every_client_sees_all_properties_each_once_and_none_of_the_system_s_own(
    key: bytes | None, headers: tuple[Header, ...], is_null: bool
) -> None:
    packed = pack_record(key, headers, is_null)
    seen = java_sees(packed)
    names = [name for name, _ in seen]
    assert len(names) == len(set(names)) == packed.count(b"\x02")
    assert b"".join(b"%b\x01%b\x02" % pair for pair in seen) == packed
    packed.decode()
    taken = {name.decode() for name in names} & SYSTEM
    assert taken <= {"KEYS"}
    assert "KEYS" not in taken or key is not None


@given(any_keys, any_headers, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_map_that_loses_the_order_of_properties_loses_no_header(
    key: bytes | None, headers: tuple[Header, ...], random: object
) -> None:
    pairs = java_sees(pack_record(key, headers, False))
    random.shuffle(pairs)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    words = read_message(b"".join(b"%b\x01%b\x02" % pair for pair in pairs))
    assert words.key == key

    def sortable(header: tuple[bytes, bytes | None]) -> tuple[bytes, bool, bytes]:
        return header[0], header[1] is None, header[1] or b""

    expected = [(name.encode(), value) for name, value in headers]
    assert sorted(words.headers, key=sortable) == sorted(expected, key=sortable)


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_bytes_are_properties_of_some_record(data: bytes) -> None:
    for name, _ in read_message(data).headers:
        name.decode()


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, {}),
        (b"order-1", {"KEYS": "order-1"}),
        ("größe".encode(), {"KEYS": "größe"}),
        (b"", {"__KAFKA_KEY": ":"}),
        (b"two words", {"KEYS": "two words", "__KAFKA_KEY": ":dHdvIHdvcmRz"}),
        (b"\x00\x00\x00\x07", {"KEYS": "\x00\x00\x00\x07"}),
        (b"\xff\x02", {"__KAFKA_KEY": ":/wI="}),
    ],
)
def test_a_key_is_keys_where_it_can_be(key: bytes | None, expected: dict[str, str]) -> None:
    assert properties(key) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (("who", b"me"), {"who": "me"}),
        (("TAGS", b"paid"), {"TAGS": "paid"}),
        (("DELAY", b"3"), {"__KAFKA_H_DELAY": "3"}),
        (("UNIQ_KEY", b"x"), {"__KAFKA_H_UNIQ_KEY": "x"}),
        (("__TID", b"x"), {"__KAFKA_H___TID": "x"}),
        (("n", None), {"__KAFKA_X_0": ".bg=="}),
        (("n", b""), {"__KAFKA_X_0": ".bg==:"}),
        (("n", b"\xff"), {"__KAFKA_X_0": ".bg==:/w=="}),
        (("", b"v"), {"__KAFKA_X_0": ".:dg=="}),
        (("", None), {"__KAFKA_X_0": "."}),
    ],
)
def test_a_header_is_plain_prefixed_or_coded(header: Header, expected: dict[str, str]) -> None:
    assert properties(None, (header,)) == expected


def test_the_second_header_of_a_name_is_coded_with_its_place() -> None:
    twice = (("a", b"1"), ("b", b"2"), ("a", b"3"))
    assert properties(None, twice) == {"a": "1", "b": "2", "__KAFKA_X_2": ".YQ==:Mw=="}


def test_a_null_value_is_marked() -> None:
    assert properties(b"k", (), is_null=True) == {"__KAFKA_NULL": "1", "KEYS": "k"}


@pytest.mark.parametrize("size", [SIZE_MAX - 200, SIZE_MAX, 60_000])
def test_headers_that_do_not_fit_are_dropped_and_counted(size: int) -> None:
    headers: tuple[Header, ...] = (("a", b"1"), ("big", b"x" * size), ("c", b"3"))
    packed = pack_record(b"k", headers, False)
    assert len(packed) <= SIZE_MAX
    found = parse_properties(packed)
    assert (found["KEYS"], found["a"], found["c"]) == ("k", "1", "3")
    fits = size < SIZE_MAX - 100
    assert ("big" in found) is fits
    assert found.get(DROPPED.decode()) == (None if fits else "headers=1")


def test_a_key_that_does_not_fit_is_dropped_and_named() -> None:
    found = properties(b"k" * 40_000, (("a", b"1"),))
    assert found == {"a": "1", "__KAFKA_DROPPED": "key headers=0"}


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (b"KEYS\x01a\x02", Words(b"a", False, [])),
        (b"KEYS\x01a b\x02", Words(b"a", False, [(b"KEYS", b"a b")])),
        (b"KEYS\x01 a\x02", Words(b"a", False, [(b"KEYS", b" a")])),
        (b"KEYS\x01  \x02", Words(None, False, [(b"KEYS", b"  ")])),
        (b"KEYS\x01\x02", Words(None, False, [(b"KEYS", b"")])),
        (b"KEYS\x01a\x02__KAFKA_KEY\x01:Yg==\x02", Words(b"b", False, [(b"KEYS", b"a")])),
        (
            b"UNIQ_KEY\x01u\x02WAIT\x01true\x02",
            Words(None, False, [(b"UNIQ_KEY", b"u"), (b"WAIT", b"true")]),
        ),
        (b"a\x01\x02", Words(None, False, [(b"a", b"")])),
        (b"a\x01b\x01c\x02", Words(None, False, [(b"a", b"b\x01c")])),
        (b"__KAFKA_NULL\x012\x02", Words(None, False, [(b"__KAFKA_NULL", b"2")])),
        (b"__KAFKA_KEY\x01!\x02", Words(None, False, [(b"__KAFKA_KEY", b"!")])),
        (b"__KAFKA_X_a\x01.\x02", Words(None, False, [(b"__KAFKA_X_a", b".")])),
        (b"__KAFKA_X_0\x01x\x02", Words(None, False, [(b"__KAFKA_X_0", b"x")])),
        (b"__KAFKA_X_0\x01.!\x02", Words(None, False, [(b"__KAFKA_X_0", b".!")])),
        (b"__KAFKA_H_\x01x\x02", Words(None, False, [(b"__KAFKA_H_", b"x")])),
        (b"n\xff\x01v\xff\x02", Words(None, False, [("n\ufffd".encode(), b"v\xff")])),
        (b"\x01x\x02y\x02", Words(None, False, [])),
    ],
)
def test_properties_are_headers_and_the_first_of_keys_is_the_key(
    packed: bytes, expected: Words
) -> None:
    assert read_message(packed) == expected


@given(any_keys, any_headers)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_the_quick_way_says_the_same_or_nothing(
    key: bytes | None, headers: tuple[Header, ...]
) -> None:
    assert pack_usual(key, headers) in (None, pack_record(key, headers, False))


def test_the_quick_way_knows_the_usual() -> None:
    assert pack_usual(b"k", (("a", b"1"), ("DELAY", b"2"))) is not None
    assert pack_usual(None, (("a", b"1"), ("a", b"2"))) is None
    assert pack_usual(b"k" * 40_000, ()) is None
