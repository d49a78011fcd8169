import gc
import os
import subprocess
import sys

import pytest
from tests.gateway.server import environment

from rockgate.gateway.runtime import tuning

PROGRAM = """
import gc, sys
from rockgate.gateway.runtime.tuning import Freezer, tune_allocator, tune_collector, tune_threads
tune_allocator()
tune_threads()
kept = [[] for _ in range(10_000)]
tune_collector()
at_start = gc.get_freeze_count()
topics = []
freezer = Freezer(lambda: len(topics))
more = [[] for _ in range(5_000)]
for number in range(1_000):
    topics.append(number)
    freezer.made(number)
print(at_start >= 10_000, gc.get_freeze_count() - at_start >= 5_000, *gc.get_threshold()[:2])
print(sys.getswitchinterval())
"""


def test_what_lives_long_is_left_out_of_collections_and_threads_wait_a_millisecond() -> None:
    # In a process of its own: frozen objects would stay frozen for every later test.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "True", "5000", "5", "0.001"], done.stderr


FULL = """
import gc
from rockgate.gateway.runtime.tuning import Freezer, tune_collector
tune_collector()
seen = []
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
topics = []
freezer = Freezer(lambda: len(topics))
for number in range(5_000):
    topics.append(number)
    freezer.made(number)
print(max(seen), len(seen) > 0)
"""


def test_no_full_collection_is_made_because_topics_are_created() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["1", "True"], done.stderr


CHURN = """
import gc
from rockgate.gateway.runtime.tuning import Freezer
gc.disable()
topics = []
freezer = Freezer(lambda: len(topics))
def come_and_go(count):
    for number in range(count):
        topics.append(number)
        freezer.made(number)
        topics.clear()
come_and_go(5_000)
print(gc.get_freeze_count())
cycle = []
cycle.append(cycle)
del cycle
for number in range(1_000):
    topics.append(number)
    freezer.made(number)
gc.unfreeze()
print(gc.collect())
"""


def test_topics_that_come_and_go_freeze_nothing_and_garbage_is_not_frozen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHURN], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["0", "0"], done.stderr


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    tuning.tune_allocator()
    assert gc.isenabled() and os.getpid()
