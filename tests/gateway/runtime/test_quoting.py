"""Untrusted text is displayed and not obeyed: in the log, on terminals, in JSON."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from rockgate.gateway.runtime.logs import LineFormatter
from rockgate.gateway.runtime.quoting import for_terminal, json_for_terminal, one_line, quoted

NASTY = (
    "a\n2026-11-16T06:07:01.123Z error kafka.listener forged",
    "a\rb",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "\u2028line",
    "\x00\x7f\x85",
    "\ud800",
    "\U000e0041",
)


def is_harmless(text: str) -> bool:
    """Whether a terminal, and whoever reads a line, gets nothing but characters to see."""
    return text.isprintable()


@pytest.mark.parametrize("text", NASTY)
def test_no_control_character_is_left_for_a_log_or_a_terminal(text: str) -> None:
    for escaped in (quoted(text), one_line(text), for_terminal(text), json_for_terminal(text)):
        plain = escaped.replace("\n", "") if escaped == json_for_terminal(text) else escaped
        assert is_harmless(plain), escaped
    assert is_harmless(for_terminal(text, "\n\t").replace("\n", "").replace("\t", ""))


@pytest.mark.parametrize(
    "text", ["plain", "größer 中文 العربية", "👨\u200d👩\u200d👧", "a\u00a0b\u3000c"]
)
def test_what_people_write_reaches_a_terminal_as_it_is(text: str) -> None:
    assert for_terminal(text) == text
    assert json_for_terminal(text) == text


@pytest.mark.parametrize("text", NASTY[:-2])
def test_json_for_a_terminal_means_the_same(text: str) -> None:
    told = json.dumps({"name": text, "list": [text]}, indent=2, ensure_ascii=False)
    assert json.loads(json_for_terminal(told)) == {"name": text, "list": [text]}
    assert is_harmless(json_for_terminal(told).replace("\n", ""))


def test_json_for_a_terminal_keeps_characters_beyond_the_basic_plane() -> None:
    told = json.dumps("\U000e0041 😀", ensure_ascii=False)
    assert json.loads(json_for_terminal(told)) == "\U000e0041 😀"
    assert "😀" in json_for_terminal(told)


# The log


def line_of(message: str, *values: object, exc_info: bool = False) -> str:
    info = sys.exc_info() if exc_info else None
    record = logging.LogRecord("rockgate.store.x", logging.ERROR, "", 1, message, values, info)
    return LineFormatter().format(record)


@pytest.mark.parametrize("text", NASTY)
def test_an_event_is_one_line_of_the_log_whatever_its_values_hold(text: str) -> None:
    line = line_of("cannot deliver topic=%s reason=%s", text, ValueError(text))
    assert is_harmless(line), line


@pytest.mark.parametrize("text", NASTY)
def test_no_line_of_a_traceback_passes_for_a_line_of_the_log(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        first, *rest = line_of("request failed", exc_info=True).split("\n")
    assert first.endswith("request failed")
    assert rest
    assert all(each.startswith("  ") and is_harmless(each) for each in rest)
