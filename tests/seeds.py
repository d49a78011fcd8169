"""Reproducible random numbers: a failing test prints its seed, and ROCKGATE_SEED repeats it."""

import os
import sys
from collections.abc import Mapping
from random import Random
from zlib import crc32

from tests.budget import chosen_table
from tests.gates import is_ci


def seeded() -> Random:
    """Return a random source for the current test."""
    seed = chosen_seed(os.environ)
    # pytest prints the output of failing tests only.
    sys.stdout.write(f"ROCKGATE_SEED={seed}\n")
    return Random(seed)


def chosen_seed(environ: Mapping[str, str]) -> int:
    """Return the seed in ROCKGATE_SEED; otherwise in CI the test's own, and elsewhere a new one.

    The result of CI for a commit must not depend on the day, so there a test always has the same
    seed, derived from its name. New ones are tried elsewhere, and with the long budget.
    """
    if given := environ.get("ROCKGATE_SEED"):
        return int(given)
    if is_ci(environ) and chosen_table() == "short":
        # pytest appends the phase to the name: "tests/x.py::test_y[z] (call)".
        name, _, _ = environ["PYTEST_CURRENT_TEST"].rpartition(" ")
        return crc32(name.encode())
    return Random().randrange(1 << 32)
