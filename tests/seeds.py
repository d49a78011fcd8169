"""Random numbers that can be had again: a failing test shows its seed, ROCKGATE_SEED repeats it."""

import os
import sys
from collections.abc import Mapping
from random import Random
from zlib import crc32

from tests.budget import chosen_table
from tests.gates import is_ci


def seeded() -> Random:
    """A random source for the test that is running."""
    seed = chosen_seed(os.environ)
    # pytest shows what a failing test wrote, and nothing of one that passed.
    sys.stdout.write(f"ROCKGATE_SEED={seed}\n")
    return Random(seed)


def chosen_seed(environ: Mapping[str, str]) -> int:
    """The seed that ROCKGATE_SEED names; else under CI the test's own, and elsewhere a new one.

    What CI says of a commit must not depend on the day, so there a test has the same seed every
    time, made of its name. New ones are tried by whoever runs it anywhere else, and by the long
    budget everywhere.
    """
    if given := environ.get("ROCKGATE_SEED"):
        return int(given)
    if is_ci(environ) and chosen_table() == "short":
        # pytest appends the phase to the name: "tests/x.py::test_y[z] (call)".
        name, _, _ = environ["PYTEST_CURRENT_TEST"].rpartition(" ")
        return crc32(name.encode())
    return Random().randrange(1 << 32)
