from typing import Any

import pytest

from rockgate.cli.admin.messages import StoredMessage
from rockgate.console.content.filters import compiled

MESSAGE = StoredMessage(
    topic="t",
    partition=0,
    offset=1,
    timestamp_ms=5,
    key=b"order-17",
    value=b'{"price": 12.5, "kind": "a", "in": {"stock": true}, "card": "4111"}',
    headers=(("source", b"web shop"), ("secret", b"s3")),
)


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ({}, True),
        ({"key": "r-1"}, True),
        ({"key": "x"}, False),
        ({"header": "source"}, True),
        ({"header": "source=shop"}, True),
        ({"header": "source=app"}, False),
        ({"header": "other"}, False),
        ({"value": '"KIND": "A"'}, True),
        ({"value": "nothing"}, False),
        ({"sql": "price > 12 AND kind = 'a'"}, True),
        ({"sql": "price > 13"}, False),
        ({"sql": "in_stock = TRUE OR source = 'x'"}, True),
        ({"sql": "missing IS NULL AND source = 'web shop'"}, True),
        ({"key": "17", "sql": "price > 13"}, False),
    ],
)
def test_a_message_passes_if_all_parts_match(given: dict[str, str], passes: bool) -> None:
    parts: dict[str, Any] = {"key": "", "header": "", "value": "", "sql": "", **given}
    assert compiled(**parts).passes(MESSAGE) is passes


def test_a_masked_field_cannot_be_guessed() -> None:
    hidden = ("card", "secret")
    for given in ({"value": "4111"}, {"sql": "card = '4111'"}, {"header": "secret=s3"}):
        parts: dict[str, Any] = {"key": "", "header": "", "value": "", "sql": "", **given}
        assert compiled(**parts).passes(MESSAGE)
        assert not compiled(**parts, fields=hidden).passes(MESSAGE)


def test_an_expression_that_is_none_says_where() -> None:
    with pytest.raises(ValueError, match="at character"):
        compiled(key="", header="", value="", sql="price >")
