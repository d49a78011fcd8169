"""Removes steps from a sequence with a difference, as long as the difference remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential.player import Step

PLAYS_MAX = 200


def shrunk(sequence: Sequence[Step], differs: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Return a shorter sequence that still differs: drop large pieces first, then single steps."""
    left = list(sequence)
    plays = 0
    size = max(1, len(left) // 2)
    while size:
        at = 0
        while at < len(left) and plays < PLAYS_MAX:
            without = left[:at] + left[at + size :]
            plays += 1
            if without and differs(without):
                left = without
            else:
                at += size
        size //= 2
    return left
