"""Regular expressions from clients: compiled by Python's `re`, if it matches them quickly.

`re` backtracks, which takes exponential time with some patterns. Here only a single character or
class may be repeated, and a pattern may have only a few repetitions, so a match takes no more
steps than a small power of the text's length.
"""

from __future__ import annotations

import re
from typing import Any, Final

SIZE_MAX: Final = 256
REPEATS_MAX: Final = 4
_SIMPLE: Final = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"})
_GROUPS: Final = frozenset({"SUBPATTERN", "BRANCH", "ATOMIC_GROUP"})
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; ValueError if it is invalid, or might take long to match."""
    if len(pattern) > SIZE_MAX:
        raise ValueError(
            f"pattern of {len(pattern):,} characters exceeds the maximum of {SIZE_MAX:,}"
        )
    try:
        compiled = re.compile(pattern)
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]  # no public way to it
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    if _repeats(parsed) > REPEATS_MAX:
        raise ValueError(f"more than {REPEATS_MAX} repetitions")
    return compiled


def _repeats(parsed: Any) -> int:
    count = 0
    for operator, argument in parsed:
        name = str(operator)
        if name in _REPEATS:
            body = argument[2]
            if len(body) != 1 or str(body[0][0]) not in _SIMPLE:
                raise ValueError("only characters and character classes may be repeated")
            count += 1
        elif name in _GROUPS:
            branches = argument[1] if name == "BRANCH" else [argument[-1]]
            count += sum(_repeats(branch) for branch in branches)
        elif name not in _SIMPLE and name != "AT":
            raise ValueError(f"{name.lower()} is not supported")
    return count
