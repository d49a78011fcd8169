"""What a group reads of a topic, and what a client compares once more."""

import pytest

from rockgate.sdk.consumer.subscription import TAGS_MAX, by_sql, by_tags
from rockgate.sdk.errors import InvalidMessage


@pytest.mark.row("SUB-2")
@pytest.mark.parametrize("expression", [None, "*", "", "  ", " * "])
def test_a_star_or_nothing_is_every_message(expression: str | None) -> None:
    found = by_tags("orders") if expression is None else by_tags("orders", expression)
    assert found.expression == "*"
    assert found.wants(None)
    assert found.wants("TagA")


@pytest.mark.row("SUB-2")
@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("TagA", ("TagA",)),
        ("TagA || TagB", ("TagA", "TagB")),
        ("TagA||TagB", ("TagA", "TagB")),
        (" TagA ||  || TagB || ", ("TagA", "TagB")),
        ("TagA || TagA", ("TagA",)),
    ],
)
def test_tags_are_parted_by_two_bars(expression: str, tags: tuple[str, ...]) -> None:
    assert by_tags("orders", expression).tags == tags


@pytest.mark.row("SUB-2")
@pytest.mark.parametrize("expression", ["||", " || || "])
def test_only_bars_are_refused(expression: str) -> None:
    with pytest.raises(InvalidMessage, match="names no tags"):
        by_tags("orders", expression)


def test_too_many_tags_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="4,097 tags; the maximum is 4,096"):
        by_tags("orders", "||".join(f"t{number}" for number in range(TAGS_MAX + 1)))


@pytest.mark.row("SUB-7")
def test_tags_of_one_code_are_distinguished() -> None:
    wanted = by_tags("orders", "AaAa")
    # Java gives both the same hash, so a broker sends both.
    assert wanted.data(1).code_set == by_tags("orders", "BBBB").data(1).code_set
    assert wanted.wants("AaAa")
    assert not wanted.wants("BBBB")
    assert not wanted.wants(None)


def test_sql_is_left_to_the_broker() -> None:
    wanted = by_sql("orders", " price > 10 ")
    assert wanted.wants(None)
    data = wanted.data(7)
    assert (data.expression_type, data.sub_string, data.sub_version) == ("SQL92", "price > 10", 7)
    assert (data.tags_set, data.code_set) == ([], [])


@pytest.mark.row("SUB-3")
def test_an_empty_condition_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="SQL expression is empty"):
        by_sql("orders", "  ")
