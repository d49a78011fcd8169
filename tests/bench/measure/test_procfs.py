import os
import time

from bench.measure.procfs import anonymous_bytes, cpu_seconds


def test_the_time_that_a_process_works_is_counted() -> None:
    before, began = cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() - began < 0.1:
        pass
    assert 0.05 <= cpu_seconds(os.getpid()) - before < 5.0


def test_memory_of_its_own_grows_with_what_a_process_holds() -> None:
    before = anonymous_bytes(os.getpid())
    held = bytearray(os.urandom(1 << 20) * 32)
    assert anonymous_bytes(os.getpid()) - before > 16 << 20
    assert len(held) == 32 << 20
