import pytest

from rockgate.cli.text import values
from rockgate.gateway.net.address import Address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9092", [Address("127.0.0.1", 9092)]),
        ("kafka.example", [Address("kafka.example", 9092)]),
        ("a:1, b:2,", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9", [Address("::1", 9)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_a_server_goes_by_host_and_port(text: str, expected: list[Address]) -> None:
    assert values.addresses(text) == expected


@pytest.mark.parametrize("text", ["", ",", "host:0", "host:99999", "a b:1", "::1", "http://x:1"])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        values.addresses(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        ("7d", 604_800_000),
        ("PT1H30M", 5_400_000),
        ("P1DT0.5S", 86_400_500),
    ],
)
def test_a_duration_is_written_short_or_as_in_iso_8601(text: str, expected: int) -> None:
    assert values.duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "10", "soon", "P", "PT", "-5s", "1h 5", "9" * 30 + "d"])
def test_what_is_no_duration_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a duration|is out of range$"):
        values.duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000),
        ("1700000000123", 1_700_000_000_123),
    ],
)
def test_a_time_is_iso_8601_in_utc_or_milliseconds(text: str, expected: int) -> None:
    assert values.time_ms(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "12", "2026-13-01", "9" * 40])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a time|is out of range$"):
        values.time_ms(text)


@pytest.mark.parametrize("milliseconds", [0, 1, 999, 1_700_000_000_123])
def test_a_time_that_is_shown_can_be_given_back(milliseconds: int) -> None:
    assert values.time_ms(values.time_text(milliseconds)) == milliseconds


def test_partitions_follow_a_colon() -> None:
    assert values.topic_partitions(["a", "b:1,0,1", "b:4"]) == {"a": None, "b": (0, 1, 4)}
    assert values.topic_partitions(["b:1", "b"]) == {"b": None}


@pytest.mark.parametrize("text", [":1", "a:", "a:x", "a:1,,2", "a:-1"])
def test_what_is_no_list_of_partitions_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected TOPIC or TOPIC:0,1,2"):
        values.topic_partitions([text])


def test_a_pair_is_parted_at_its_first_equals_sign() -> None:
    assert values.mapping(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(ValueError, match="'a' is given twice"):
        values.mapping(["a=1", "a=2"])
    for text in ("a", "=1"):
        with pytest.raises(ValueError, match="expected NAME=VALUE"):
            values.mapping([text])


@pytest.mark.parametrize(
    ("size", "text"),
    [(-1, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 50, "1.0 PiB")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert values.size_text(size) == text
