"""Taking steps out of a sequence that differs, as long as it goes on differing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential.player import Step

PLAYS_MAX = 200


def shrunk(sequence: Sequence[Step], differs: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """A shorter sequence that differs, too: first large pieces are left out, then single steps."""
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
