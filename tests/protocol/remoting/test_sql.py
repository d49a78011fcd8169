import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.remoting.sql import SqlError, compile_expression
from rockgate.protocol.remoting.sql.parser import DEPTH_MAX
from rockgate.protocol.remoting.sql.tokens import SIZE_MAX

MESSAGE = {"a": "3", "color": "blue", "ok": "true", "price": "2.50", "TAGS": "TagA", "big": "1e3"}


@pytest.mark.parametrize(
    ("expression", "is_wanted"),
    [
        ("a = 3", True),
        ("a <> 3", False),
        ("a > 2 AND a < 4", True),
        ("a >= 3 and a <= 3", True),
        ("a BETWEEN 0 AND 3", True),
        ("a not between 0 and 3", False),
        ("a BETWEEN 4 AND 9", False),
        ("color = 'blue'", True),
        ("color <> 'red'", True),
        ("color IN ('red', 'blue')", True),
        ("color NOT IN ('red','green')", True),
        ("missing IS NULL", True),
        ("missing IS NOT NULL", False),
        ("color is not null", True),
        ("missing = 3", False),
        ("NOT (missing = 3)", False),
        ("missing <> 3", False),
        ("missing = 3 OR a = 3", True),
        ("missing = 3 AND a = 4", False),
        ("NOT missing IN ('x')", False),
        ("ok = TRUE", True),
        ("ok = false", False),
        ("ok", True),
        ("TRUE", True),
        ("NOT TRUE", False),
        ("NULL", False),
        ("price = 2.5", True),
        ("price > 2.4", True),
        ("big = 1000", True),
        ("a > -1", True),
        ("a = 3L", True),
        ("color > 1", False),
        ("NOT (color > 1)", False),
        ("color = 'it''s'", False),
        ("(a = 3 OR color = 'x') AND NOT (color = 'red')", True),
        ("a = 4 OR a = 3 AND color = 'blue'", True),
        (
            "(TAGS is not null and TAGS in ('TagA','TagB')) and (a is not null and a between 0 "
            "and 3) and not (color = 'red')",
            True,
        ),
    ],
)
def test_an_expression_means_what_rocketmq_means_by_it(expression: str, is_wanted: bool) -> None:
    assert compile_expression(expression)(MESSAGE) is is_wanted


@pytest.mark.row("SUB-6")
@pytest.mark.parametrize(
    "expression",
    [
        *("a", "3", "'text'", "color", "missing", "NULL"),
        *("NOT color", "TRUE AND a", "ok AND color"),
        *("a > color", "color BETWEEN 1 AND 3", "ok > 1", "color < 'green'", "NOT (color > 1)"),
    ],
)
def test_what_cannot_be_compared_or_is_no_yes_or_no_does_not_match(expression: str) -> None:
    assert compile_expression(expression)(MESSAGE) is False


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "Expected a value, got 'end of expression' at character 0."),
        ("a is is 3 ((", "Expected NULL, got 'IS' at character 5."),
        ("a =", "Expected a value, got 'end of expression' at character 3."),
        ("a = 3 b", "Expected end of expression, got 'b' at character 6."),
        ("a IN (1)", "Expected text, got '1' at character 6."),
        ("a IN ()", "Expected text, got ')' at character 6."),
        ("a NOT 3", "Expected BETWEEN or IN, got '3' at character 6."),
        ("a BETWEEN 1 OR 2", "Expected AND, got 'OR' at character 12."),
        ("(a = 3", "Expected ), got 'end of expression' at character 6."),
        ("a = 'open", 'Unexpected character "\'" at character 4'),
        ("a = #", "Unexpected character '#' at character 4"),
        ("- x = 3", "Expected a number, got 'x' at character 2."),
        ("a = 99999999999999999999", "Number 99999999999999999999 is too large"),
    ],
)
def test_what_cannot_be_understood_is_reported_with_its_place(expression: str, reason: str) -> None:
    with pytest.raises(SqlError) as refused:
        compile_expression(expression)
    assert reason in str(refused.value)


def test_size_and_depth_are_bounded() -> None:
    compile_expression("(" * (DEPTH_MAX - 1) + "a" + ")" * (DEPTH_MAX - 1))
    for hostile in ("(" * 10_000, "a" * (SIZE_MAX + 1), "a OR " * 3_000 + "a", "NOT " * 3_000):
        with pytest.raises(SqlError):
            compile_expression(hostile)


@given(st.text(st.sampled_from("ab ()'=<>,-1.NOTINDRBEW") | st.characters(), max_size=40))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_text_is_an_expression_or_refused(source: str) -> None:
    try:
        expression = compile_expression(source)
    except SqlError:
        return
    assert expression(MESSAGE) in (True, False)
    assert expression({}) in (True, False)


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_property_of_any_text_is_compared_without_harm(value: str) -> None:
    for source in ("a = 1", "a > 1", "a BETWEEN 1 AND 2", "a IN ('x')", "a", "NOT a", "a = b"):
        compile_expression(source)({"a": value, "b": value[::-1]})
