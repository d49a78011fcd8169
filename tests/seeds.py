"""Random numbers that can be had again: a failing test shows its seed, ROCKGATE_SEED repeats it."""

import os
import sys
from random import Random


def seeded() -> Random:
    """A random source with a new seed, or with the one that ROCKGATE_SEED names."""
    seed = int(os.environ.get("ROCKGATE_SEED") or Random().randrange(1 << 32))
    # pytest shows what a failing test wrote, and nothing of one that passed.
    sys.stdout.write(f"ROCKGATE_SEED={seed}\n")
    return Random(seed)
