import pytest

from rockgate.protocol.kafka.versions import Versions


@pytest.mark.parametrize(
    ("text", "low", "high"), [("0-12", 0, 12), ("3+", 3, 32767), ("7", 7, 7), ("none", 0, -1)]
)
def test_a_range_is_read_and_written_as_kafka_writes_it(text: str, low: int, high: int) -> None:
    versions = Versions.parse(text)
    assert (versions.min, versions.max) == (low, high)
    assert str(versions) == text


@pytest.mark.parametrize("text", ["", "-1", "3-", "5-2", "a", "1-2-3", "3 +", "0-40000"])
def test_anything_else_is_not_a_range(text: str) -> None:
    with pytest.raises(ValueError, match="not a version range"):
        Versions.parse(text)


def test_a_range_contains_its_ends_and_nothing_beyond() -> None:
    versions = Versions.parse("3-5")
    assert [version for version in range(8) if version in versions] == [3, 4, 5] == list(versions)


def test_the_empty_range_contains_nothing() -> None:
    none = Versions.parse("none")
    assert not none and 0 not in none and list(none) == []


def test_ranges_meet() -> None:
    assert str(Versions.parse("3+") & Versions.parse("0-7")) == "3-7"
    assert not Versions.parse("0-2") & Versions.parse("3+")
