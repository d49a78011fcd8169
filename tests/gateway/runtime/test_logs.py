import logging
import re

import pytest

from rockgate.gateway.runtime.logs import LineFormatter
from rockgate.gateway.runtime.quoting import VALUE_CHARS_MAX, quoted


def test_a_line_has_time_level_module_and_message() -> None:
    record = logging.LogRecord(
        "rockgate.gateway.kafka.server.listener",
        logging.WARNING,
        "",
        1,
        "limit reached max=%d",
        (7,),
        None,
    )
    line = LineFormatter().format(record)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning "
        r"kafka\.server\.listener limit reached max=7",
        line,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("rdkafka", "rdkafka"),
        ("", "''"),
        ("two words", "'two words'"),
        ("a=b", "'a=b'"),
        ("new\nline", "'new\\nline'"),
        ("\x1b[31mred", "'\\x1b[31mred'"),
        ("\u202eevil", "'\\u202eevil'"),
    ],
)
def test_a_peers_text_cannot_pass_for_anything_but_a_value(value: str | None, text: str) -> None:
    assert quoted(value) == text


def test_a_peers_text_is_bounded() -> None:
    assert len(quoted("x" * 30_000)) == VALUE_CHARS_MAX + 1
