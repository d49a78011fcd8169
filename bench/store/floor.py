"""The minimum cost of a 16 KB append on this machine: its parts alone, each one C call.

Pages are populated, a body is copied into them, and its checksum is computed, each over a whole
segment at a time with nothing in between: no envelope, no index, almost no interpreter. The plain
write does its part in the same way, into a file that grows and into one with reserved blocks. A
comparison of the store with the plain write has here what no code could change.
"""

import os
import time
from collections.abc import Callable

from bench.measure.results import Report
from bench.store.sizes import scratch, sizes
from rockgate.protocol.entry import body_checksum
from rockgate.store.files.interface import DiskDirectory

BODY_SIZE = 16_384
ROUNDS = 3


def measure(report: Report) -> None:
    """Add the results, in CPU time: other load is not part of the minimum."""
    found: dict[str, list[float]] = {}
    with scratch() as path:
        # Files are retained until the end: a hypervisor may reclaim freed memory.
        for number in range(ROUNDS):
            _ours(DiskDirectory(path), f"segment-{number}", found)
            _theirs(f"{path}/plain-{number}", found)
    report.samples["parts of an append of 16 KB alone, microseconds of processor"] = found


def _timed(found: dict[str, list[float]], name: str, count: int, work: Callable[[], None]) -> None:
    start = time.thread_time()
    work()
    found.setdefault(name, []).append(round((time.thread_time() - start) / count * 1e6, 3))


def _ours(directory: DiskDirectory, name: str, found: dict[str, list[float]]) -> None:
    size = sizes().segment_bytes
    places = range(0, size, BODY_SIZE)
    mapping = directory.allocate(name, size)
    body = os.urandom(BODY_SIZE)

    def copy() -> None:
        view = mapping.view
        for at in places:
            view[at : at + BODY_SIZE] = body

    def check() -> None:
        view = mapping.view
        for at in places:
            body_checksum(view[at : at + BODY_SIZE])

    _timed(found, "populating", len(places), lambda: mapping.populate(0, size))
    _timed(found, "copying", len(places), copy)
    _timed(found, "checksum", len(places), check)
    mapping.close()


def _theirs(path: str, found: dict[str, list[float]]) -> None:
    size = sizes().segment_bytes
    places = range(0, size, BODY_SIZE)
    body = os.urandom(BODY_SIZE)
    for name, is_reserved in (("pwritev", False), ("pwritev into reserved blocks", True)):
        descriptor = os.open(f"{path}-{is_reserved}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if is_reserved:
            os.posix_fallocate(descriptor, 0, size)

        def write(descriptor: int = descriptor) -> None:
            for at in places:
                os.pwritev(descriptor, (body,), at)

        _timed(found, name, len(places), write)
        os.close(descriptor)
