"""The free-space reserve of a disk: a rule for everything that creates files."""

from __future__ import annotations

from collections.abc import Callable

FreeSpace = Callable[[int], int]
"""How many bytes must stay free on a disk of so many."""


def nothing(total: int) -> int:
    """Keep nothing free: for upkeep."""
    return 0
