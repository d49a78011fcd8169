"""How many instructions a server executes for requests, counted by valgrind's callgrind.

A count hardly depends on what else the machine does, so that one per cent can be seen where times
differ by twenty. Counted is what happens while the loop processes the bytes that it has received:
decoding, handling, and encoding what is answered at once. Timers and other periodic work are not,
because the slower the machine is, the more of it falls on a request; nor is what the kernel does.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bench.measure.results import LeftOut
from bench.peers.rockgate import RockgateServer

SECONDS_MAX = 300.0
RECEIVED = "__pyx_f_6uvloop_4loop___uv_stream_buffered_on_read"
"""The function of uvloop in which a session processes what was received."""
CONTROL_SECONDS_MAX = 120.0
POLL_SECONDS = 0.05
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def command(folder: Path) -> tuple[str, ...]:
    """What precedes a program that is to be counted; nothing is before `Counted.begin`."""
    if shutil.which("valgrind") is None or shutil.which("vgdb") is None:
        raise LeftOut("valgrind is not installed")
    out = folder / "callgrind.out"
    return (
        *("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"),
        f"--toggle-collect={RECEIVED}",
        f"--callgrind-out-file={out}",
    )


class Counted:
    """Counts the instructions of a server that was started behind `command(folder)`."""

    def __init__(self, server: RockgateServer, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def begin(self) -> Self:
        """Count from now on."""
        self._tell("instrumentation on")
        return self

    def count(self, work: Callable[[], object]) -> int:
        """Return how many instructions are executed while something is done."""
        self._tell("zero")
        work()
        before = self._dumps()
        self._tell("dump")
        deadline = time.monotonic() + CONTROL_SECONDS_MAX
        while True:
            for path in self._dumps() - before:
                found = _TOTAL.search(path.read_text(encoding="utf-8", errors="replace"))
                if found is not None:
                    return int(found[1])
            if time.monotonic() > deadline:
                raise LeftOut("callgrind wrote no counts")
            time.sleep(POLL_SECONDS)

    def _dumps(self) -> set[Path]:
        return set(self._folder.glob("callgrind.out*"))

    def _tell(self, word: str) -> None:
        subprocess.run(
            ["vgdb", f"--pid={self._server.pid}", *word.split()],
            check=True,
            capture_output=True,
            timeout=CONTROL_SECONDS_MAX,
            env=dict(os.environ),
        )
