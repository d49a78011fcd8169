"""Load programs on RocketMQ's own Java client: compiled once, a process for each measurement.

A program prints one line that starts with `@@` and contains its results.
"""

import re
import subprocess
from pathlib import Path

from bench.peers import jars
from bench.peers.tools import find_java

FOLDER = Path(__file__).parent
SECONDS_MAX = 180.0


class LoadFailed(Exception):
    """The program ended without results."""


class JavaLoad:
    """One program of bench/load."""

    def __init__(self, folder: Path, program: str, *, source: Path = FOLDER) -> None:
        """Compile it into a folder, which is also the home of the client's files.

        `source` is the folder of the program.
        """
        self._folder = folder
        self._program = program
        self._path = f"{folder}:{jars.fetch('rocketmq')}/*"
        compiler = str(find_java().with_name("javac"))
        file = str(source / f"{program}.java")
        subprocess.run([compiler, "-d", str(folder), "-cp", self._path, file], check=True)

    def run(self, *words: str | float, seconds_max: float = SECONDS_MAX) -> list[float]:
        """Run it, and return its results."""
        return finish(self.start(*words), seconds_max)

    def start(self, *words: str | float) -> subprocess.Popen[str]:
        """Start it; `finish` waits for it."""
        command = [
            *(str(find_java()), "-Xmx512m", f"-Duser.home={self._folder}"),
            *("-Drocketmq.client.logUseSlf4j=true", "-cp", self._path, self._program),
            *map(str, words),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(program: subprocess.Popen[str], seconds_max: float = SECONDS_MAX) -> list[float]:
    """Wait for a program to end, and return its results."""
    try:
        out, err = program.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired as late:
        program.kill()
        out, err = program.communicate()
        raise LoadFailed(f"no end after {seconds_max:g} s: {out[-500:]}{err[-1000:]}") from late
    return read(out, err)


def read(out: str, err: str) -> list[float]:
    """Parse the results of a program; LoadFailed, with its output, if there are none."""
    found = re.search(r"^@@((?: -?[\d.]+)+)$", out, re.MULTILINE)
    if found is None:
        raise LoadFailed(f"{out[-1000:]}{err[-2000:]}")
    return [float(number) for number in found[1].split()]
