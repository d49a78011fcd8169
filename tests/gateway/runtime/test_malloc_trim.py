"""When memory is given back that malloc keeps, and that it is."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from tests.gateway.server import environment
from tests.waiting import wait_until

from rockgate.gateway.runtime import malloc_trim
from rockgate.gateway.runtime.malloc_trim import (
    GROWN_BYTES,
    PUT_OFF_MAX,
    ROUNDS,
    Trimming,
    TrimmingThread,
)

MANY = 100


class Memory:
    """As much as a test says, and how often it was to be given back."""

    def __init__(self) -> None:
        self.bytes = 1 << 30
        self.trims = 0
        self.share = 0.0
        self._seconds = 0
        self._used = 0.0

    def now(self) -> float:
        """A second passes with each reading."""
        self._seconds += 1
        self._used += self.share
        return self._seconds

    def processor(self) -> float:
        return self._used

    def measure(self) -> int:
        return self.bytes

    def trim(self) -> None:
        self.trims += 1


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def looking(memory: Memory) -> Trimming:
    return Trimming(memory.measure, memory.trim, processor=memory.processor, now=memory.now)


def look(looking: Trimming, times: int = MANY) -> None:
    for _ in range(times):
        looking.step()


def test_a_process_that_does_not_grow_is_left_alone(memory: Memory, looking: Trimming) -> None:
    look(looking)
    memory.bytes += GROWN_BYTES - 1
    look(looking)
    assert memory.trims == 0


def test_a_busy_process_is_left_alone_until_it_is_quiet(memory: Memory, looking: Trimming) -> None:
    memory.bytes += GROWN_BYTES
    memory.share = 0.9
    look(looking, PUT_OFF_MAX)
    assert memory.trims == 0
    memory.share = 0.1
    look(looking, ROUNDS)
    assert memory.trims == ROUNDS


def test_a_process_that_is_never_quiet_gives_back_anyway(memory: Memory, looking: Trimming) -> None:
    memory.bytes += GROWN_BYTES
    memory.share = 0.9
    look(looking, PUT_OFF_MAX + 1)
    assert memory.trims == 1


def test_after_growth_it_is_given_back_some_times_and_not_forever(
    memory: Memory, looking: Trimming
) -> None:
    memory.bytes += GROWN_BYTES
    look(looking)
    assert memory.trims == ROUNDS
    memory.bytes += GROWN_BYTES
    look(looking)
    assert memory.trims == 2 * ROUNDS


def test_growth_counts_from_the_least_there_was(memory: Memory, looking: Trimming) -> None:
    memory.bytes -= GROWN_BYTES
    look(looking)
    memory.bytes += GROWN_BYTES
    look(looking)
    assert memory.trims == ROUNDS


def test_a_thread_looks_until_it_is_stopped(memory: Memory, looking: Trimming) -> None:
    memory.bytes += GROWN_BYTES
    thread = TrimmingThread(looking, 0.001)
    wait_until(lambda: memory.trims == ROUNDS, "it has looked")
    thread.stop()
    assert "rockgate-trim" not in [each.name for each in threading.enumerate()]


def test_a_c_library_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    malloc_trim.trim()


PROGRAM = """
import threading
from rockgate.gateway.runtime.malloc_trim import own_bytes, trim
from rockgate.gateway.runtime.tuning import tune_allocator
tune_allocator()
before = own_bytes()
kept = []
def work():
    pieces = []
    for number in range(1_000):
        pieces.append(bytearray(b"x" * 100_000))
        kept.append(bytearray(1_000))
def pile():
    kept.append(bytearray(1_000))
    pieces = [bytearray(b"x" * 100_000) for _ in range(500)]
def in_a_thread():
    thread = threading.Thread(target=pile)
    thread.start()
    thread.join()
{case}()
grown = own_bytes() - before
trim()
print(grown >> 20, (own_bytes() - before) >> 20)
"""


@pytest.mark.parametrize("case", ["work", "in_a_thread"])
def test_what_was_freed_between_what_is_kept_goes_back_to_the_system(case: str) -> None:
    # In a process of its own: how malloc works is said before there are threads.
    program = PROGRAM.replace("{case}", case)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    grown, left = map(int, done.stdout.split())
    assert grown > 40, done.stderr
    assert left < 20
