"""Memory as a broker finds it: full of page cache.

On a machine that was just booted, most memory was never touched. The first touch of a page is then
a fault in the hypervisor, at up to three seconds of CPU time per gigabyte on the machine where this
was found, charged to whoever writes a log first. A broker that has run for an hour never sees that:
its pages come from old cache. So free memory is filled with clean pages of a sparse file before
anything is measured; the kernel reclaims them as needed.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

STEP = 64 << 20
LEFT_FREE = 512 << 20


def free_bytes() -> int:
    """Return the memory that nothing uses, not even the page cache."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("MemFree:"))
    return int(line.split()[1]) * 1024


@contextmanager
def filled(tell: Callable[[str], None]) -> Iterator[None]:
    """Fill free memory with page cache; the file is removed when the block ends."""
    with tempfile.TemporaryFile(prefix="page-cache-") as file:
        size = max(0, free_bytes() - LEFT_FREE)
        os.ftruncate(file.fileno(), size)
        buffer = bytearray(STEP)
        for at in range(0, size, STEP):
            os.preadv(file.fileno(), [buffer], at)
            if at % (1 << 30) == 0:
                tell(f"filling the page cache: {at >> 30} of {size >> 30} GiB")
        yield
