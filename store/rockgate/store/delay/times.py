"""Due times as one number: a time of day, or the end of a delay of known length.

docs/internals/delay.md has the layout. The lower bits are the due time in milliseconds since 1970;
the upper bits are the delay in minutes, rounded up, or 0 for a time of day. A time of day follows
the wall clock when that is set; a delay does not.
"""

from __future__ import annotations

from typing import Final

DUE_BITS: Final = 43
DUE_MAX: Final = (1 << DUE_BITS) - 1
"""The latest due time, in the year 2248; larger numbers contain a delay."""
MINUTE_MS: Final = 60_000
MINUTES_MAX: Final = (1 << 20) - 1
"""728 days; a longer delay is honoured, but its length is not stored."""


def after(now_ms: int, delay_ms: int) -> int:
    """Return the due time of a delay that starts now."""
    minutes = min(max(1, -(-delay_ms // MINUTE_MS)), MINUTES_MAX)
    return minutes << DUE_BITS | min(max(0, now_ms + delay_ms), DUE_MAX)


def at(time_ms: int) -> int:
    """Return the due time for a time of day."""
    return min(max(0, time_ms), DUE_MAX)


def due_ms(when: int) -> int:
    """Return the due time in milliseconds since 1970."""
    return when & DUE_MAX


def moved(when: int, milliseconds: int) -> int:
    """Return the same delay, due this much later or, if negative, earlier."""
    due = min(max(0, (when & DUE_MAX) + milliseconds), DUE_MAX)
    return when >> DUE_BITS << DUE_BITS | due


def bounded(when: int, now_ms: int) -> int:
    """Return a delay that ends no later than its own length from now."""
    minutes = when >> DUE_BITS
    longest = now_ms + minutes * MINUTE_MS
    if minutes >= MINUTES_MAX or when & DUE_MAX <= longest:
        return when
    return minutes << DUE_BITS | longest
