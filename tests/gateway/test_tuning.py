import gc
import os
import subprocess
import sys

import pytest
from tests.gateway.server import environment

from rockgate.gateway import tuning

PROGRAM = """
import gc, sys
from rockgate.gateway.tuning import Freezer, tune_allocator, tune_collector, tune_threads
tune_allocator()
tune_threads()
kept = [[] for _ in range(10_000)]
tune_collector()
at_start = gc.get_freeze_count()
freezer = Freezer()
more = [[] for _ in range(5_000)]
for number in range(1_000):
    freezer.made(number)
print(at_start >= 10_000, gc.get_freeze_count() - at_start >= 5_000, gc.get_threshold()[0])
print(sys.getswitchinterval())
"""


def test_what_lives_long_is_left_out_of_collections_and_threads_wait_a_millisecond() -> None:
    # In a process of its own: frozen objects would stay frozen for every later test.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "True", "20000", "0.001"], done.stderr


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    tuning.tune_allocator()
    assert gc.isenabled() and os.getpid()
