"""RocketMQ's delay levels, as in `1s 5s 10s 30s 1m`."""

from __future__ import annotations

import re
from typing import Final

_LEVEL: Final = re.compile(r"([0-9]{1,9})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_levels(text: str) -> list[int]:
    """Return the milliseconds of each level, from level 1 on."""
    levels = []
    for word in text.split():
        found = _LEVEL.fullmatch(word)
        if found is None:
            raise ValueError(f"delay level {word!r} must be a number followed by s, m, h or d")
        levels.append(int(found[1]) * _UNIT_MS[found[2]])
    if not levels:
        raise ValueError("delay levels must not be empty")
    return levels
