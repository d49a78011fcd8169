"""Regular expressions from clients: RE2, which matches in linear time.

Kafka's servers use the same language by another library. Compiled patterns take a bounded amount
of memory, so a short pattern that stands for a huge automaton is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

SIZE_MAX: Final = 4_096
MEMORY_MAX: Final = 1 << 20
_CACHED: Final = 64
"""Compiled patterns that are cached, each of which may take all of that memory."""


@lru_cache(_CACHED)
def compile_pattern(pattern: str) -> Any:
    """The compiled pattern, whose `fullmatch` takes a name; ValueError if it cannot be used."""
    if len(pattern) > SIZE_MAX:
        raise ValueError(
            f"pattern of {len(pattern):,} characters exceeds the maximum of {SIZE_MAX:,}"
        )
    # With the first pattern, not at the start of a server that may never see one.
    import re2

    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        raise ValueError(_reason(error)) from error


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
