"""A load program on RocketMQ's own Java client: compiled once, a process for each measurement.

A program prints one line that begins with `@@`, and its numbers are what was measured.
"""

import re
import subprocess
from pathlib import Path

from bench.peers import jars
from bench.peers.tools import find_java

FOLDER = Path(__file__).parent
SECONDS_MAX = 180.0


class LoadFailed(Exception):
    """The program ended without its line: what it asked for was not done."""


class JavaLoad:
    """One program of bench/load."""

    def __init__(self, folder: Path, program: str) -> None:
        """Compile it into a folder, which also is the home of the client's files."""
        self._folder = folder
        self._program = program
        self._path = f"{folder}:{jars.fetch('rocketmq')}/*"
        compiler = str(find_java().with_name("javac"))
        source = FOLDER / f"{program}.java"
        subprocess.run([compiler, "-d", str(folder), "-cp", self._path, str(source)], check=True)

    def run(self, *words: str | float, seconds_max: float = SECONDS_MAX) -> list[float]:
        """The numbers that it found."""
        return finish(self.start(*words), seconds_max)

    def start(self, *words: str | float) -> subprocess.Popen[str]:
        """Let it run beside us until `finish`."""
        command = [
            *(str(find_java()), "-Xmx512m", f"-Duser.home={self._folder}"),
            *("-Drocketmq.client.logUseSlf4j=true", "-cp", self._path, self._program),
            *map(str, words),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(program: subprocess.Popen[str], seconds_max: float = SECONDS_MAX) -> list[float]:
    """Wait for a program's end and return its numbers."""
    try:
        out, err = program.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired as late:
        program.kill()
        out, err = program.communicate()
        raise LoadFailed(f"no end after {seconds_max:g} s: {out[-500:]}{err[-1000:]}") from late
    return read(out, err)


def read(out: str, err: str) -> list[float]:
    """The numbers of a program's line; LoadFailed, with what it said, if there is none."""
    found = re.search(r"^@@((?: -?[\d.]+)+)$", out, re.MULTILINE)
    if found is None:
        raise LoadFailed(f"{out[-1000:]}{err[-2000:]}")
    return [float(number) for number in found[1].split()]
