"""Tokenizer of expressions: strings, numbers, names, keywords and signs, with positions."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

SIZE_MAX: Final = 16_384
TOKENS_MAX: Final = 4_096

KEYWORDS: Final = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE"))

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^']|'')*')
    |(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<integer>\d+[lL]?)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<sign><>|<=|>=|[=<>(),-])""",
    re.VERBOSE,
)


class SqlError(ValueError):
    """An invalid expression: what is wrong, and at which character."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"{reason} at character {at}.")
        self.reason = reason
        self.at = at


class Token(NamedTuple):
    """One token. `kind` is text, float, integer, name, keyword, sign or end."""

    kind: str
    text: str
    at: int


def tokens(source: str) -> list[Token]:
    """The tokens of an expression, ended by one of kind `end`."""
    if len(source) > SIZE_MAX:
        raise SqlError(
            f"Expression of {len(source):,} characters exceeds the maximum of {SIZE_MAX:,}", 0
        )
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise SqlError(f"Unexpected character {source[at]!r}", at)
        kind, text = str(match.lastgroup), match[0]
        if kind == "name" and text.upper() in KEYWORDS:
            kind, text = "keyword", text.upper()
        if kind != "space":
            found.append(Token(kind, text, at))
            if len(found) > TOKENS_MAX:
                raise SqlError(f"More than {TOKENS_MAX:,} tokens", at)
        at = match.end()
    found.append(Token("end", "end of expression", at))
    return found
