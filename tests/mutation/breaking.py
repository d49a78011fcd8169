"""Breaking the code behind requirement rows, to see whether their tests notice.

mutations.toml has one small change of the production source for each row of a sample. A change is
made in a scratch copy of the checkout, never in the checkout itself; there the tests with the row's
mark run, and at least one of them has to fail. A test that stays green without its feature proves
nothing.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from docs.rows import Mark, shown_by
from tests.house.checkout import ROOT, SOURCE_ROOMS, files

TABLE = Path(__file__).parent / "mutations.toml"
SECONDS_MAX = 240.0
TESTS_FAILED = 1
"""pytest's exit status if tests ran and some failed; an error while collecting has 2."""


class Verdict(Enum):
    """The result of a row's tests on the broken code."""

    RED = "red"
    GREEN = "green: no test noticed"
    BROKEN = "no test ran: the change breaks more than the row"
    LATE = "the tests did not end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change that removes a row's feature."""

    row: str
    file: str
    replace: str
    by: str
    why: str
    """What is broken, in a clause."""
    test: str = ""
    """The one that has to notice by itself, in place of those with the row's mark."""

    @property
    def name(self) -> str:
        """Its name in a list."""
        return f"{self.row}: {self.why}"

    def applied(self, text: str) -> str:
        """Return the changed text of its file; ValueError unless it has exactly one match."""
        count = text.count(self.replace)
        if count != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {count} times")
        return text.replace(self.replace, self.by)


def load(path: Path = TABLE) -> list[Mutation]:
    """Every mutation, in the order of the file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Mutation(**each) for each in data["mutation"]]


def shown_in(row: str, marks: Mapping[str, list[Mark]]) -> list[str]:
    """Return the tests to run for a row: those here, not those with third-party clients."""
    found = [mark for mark in marks.get(row, []) if mark.file.startswith("tests/")]
    return sorted({"::".join([mark.file, *mark.test.split(".")]).rstrip(":") for mark in found})


class Scratch:
    """A copy of the checkout in which code may be broken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for path in files():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target)
        self._marks = shown_by(ROOT)

    def passes(self, rows: Iterable[str]) -> bool:
        """Whether all tests of these rows pass while nothing is broken."""
        chosen = sorted({test for row in rows for test in shown_in(row, self._marks)})
        return self._run(chosen, seconds_max=4 * SECONDS_MAX) == 0

    def judge(self, mutation: Mutation) -> Verdict:
        """Break the code, run the row's tests, restore it."""
        path = self._folder / mutation.file
        text = path.read_text(encoding="utf-8")
        path.write_text(mutation.applied(text), encoding="utf-8")
        try:
            tests = [mutation.test] if mutation.test else shown_in(mutation.row, self._marks)
            status = self._run(tests, "-x")
        except subprocess.TimeoutExpired:
            return Verdict.LATE
        finally:
            path.write_text(text, encoding="utf-8")
        if status == TESTS_FAILED:
            return Verdict.RED
        return Verdict.BROKEN if status else Verdict.GREEN

    def _run(self, tests: list[str], *flags: str, seconds_max: float = SECONDS_MAX) -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags, *tests]
        rooms = [str(self._folder / room) for room in SOURCE_ROOMS]
        environ = {
            **os.environ,
            # Before installed packages: servers that a test starts are broken too.
            "PYTHONPATH": os.pathsep.join([*rooms, str(self._folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=environ,
            timeout=seconds_max,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode
