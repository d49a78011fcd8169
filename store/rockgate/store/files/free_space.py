"""The free-space reserve of a disk: a rule for everything that creates files."""

from __future__ import annotations

from collections.abc import Callable

FreeSpace = Callable[[int], int]
"""Returns how many bytes must stay free on a disk of a total size."""


def nothing(total: int) -> int:
    """Reserve nothing: for upkeep."""
    return 0
