"""The amounts to measure: everything, or just enough for a smoke test."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The amounts."""

    is_quick: bool
    segment_bytes: int
    append_bytes: int
    """Bytes appended in 16 KB batches: at least five segments, for four rolls."""
    small_count: int
    """1 KB entries per contender."""
    recovery_bytes: int
    recovery_count: int
    big_bytes: int
    stall_seconds: float
    fold_count: int


@cache
def sizes() -> Sizes:
    """The amounts of this run."""
    if os.environ.get("ROCKGATE_BENCH_QUICK"):
        return Sizes(
            is_quick=True,
            segment_bytes=32 * MIB,
            append_bytes=192 * MIB,
            small_count=60_000,
            recovery_bytes=96 * MIB,
            recovery_count=40_000,
            big_bytes=512 * MIB,
            stall_seconds=12.0,
            fold_count=200_000,
        )
    return Sizes(
        is_quick=False,
        segment_bytes=256 * MIB,
        append_bytes=1536 * MIB,
        small_count=400_000,
        recovery_bytes=800 * MIB,
        recovery_count=400_000,
        big_bytes=10_000 * MIB,
        stall_seconds=60.0,
        fold_count=1_000_000,
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary directory on disk (TMPDIR chooses which)."""
    with tempfile.TemporaryDirectory(prefix="rockgate-bench-") as name:
        yield Path(name)
