"""Escapes untrusted text for log lines and terminals.

Names of topics, groups and clients, keys, values and the errors of other servers may hold anything:
a line break that begins a log line of its own, an escape sequence that clears the screen or sets
its title, a mark that reverses the reading direction. One function is for a value in a log line,
one for a whole line of the log, one for terminals, and one for JSON on its way there.
"""

from __future__ import annotations

import unicodedata
from typing import Final

VALUE_CHARS_MAX: Final = 120

_JOINERS: Final = frozenset("\u200c\u200d")
"""Invisible characters that words and emoji need; they do not change the reading direction."""


def quoted(value: str | None) -> str:
    """A peer's text as a value in the log:

    truncated, and quoted if it could be mistaken for more.
    """
    if value is None:
        return "-"
    text = value if len(value) <= VALUE_CHARS_MAX else value[:VALUE_CHARS_MAX] + "…"
    is_plain = text.isprintable() and text and not any(c in " =\"'" for c in text)
    return text if is_plain else ascii(text)


def one_line(text: str) -> str:
    """A text as one line of the log: invisible characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def for_terminal(text: str, keeps: str = "") -> str:
    """A text for a terminal, with control characters escaped;

    `keeps` may name line breaks, tabs.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keeps or _is_visible(c) else _escaped(c) for c in text)


def json_for_terminal(text: str) -> str:
    """Equivalent JSON in which every invisible character but line breaks is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or _is_visible(c) else _json_escaped(c) for c in text)


def _is_visible(character: str) -> bool:
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def _json_escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
