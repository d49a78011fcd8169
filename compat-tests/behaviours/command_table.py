"""The commands of mqadmin in a table, and whether two brokers do the same with them.

rocketmq-tools/commands.toml describes the columns. The results are a file of their own, from which
docs/compatibility.py makes a table for the page.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_MAX = 60
FAILED = re.compile(r"^(Caused by: )?[\w$]+(\.[\w$]+)+(Exception|Error)(:|$)", re.MULTILINE)
"""The first line of a stack trace."""
HERE = Path(__file__).resolve().parents[1] / "rocketmq-tools"
TABLE = HERE / "commands.toml"
RESULTS = HERE / "commands.json"

OUTCOMES = ("same", "refused", "neither", "differs")
MAY_FAIL = ("neither", "differs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A command with its words, and what each side is expected to print."""

    run: str
    outcome: str = "same"
    line: str = ""
    shows: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    why: str = ""
    seconds: int = SECONDS_MAX
    keep: tuple[str, ...] = ()
    reads: str = ""

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"{self.run}: outcome {self.outcome!r} is none of {OUTCOMES}")
        of_both, of_each = bool(self.shows), bool(self.theirs and self.ours and self.why)
        if (self.outcome == "same") != of_both or (self.outcome != "same") != of_each:
            raise ValueError(f"{self.run}: `same` needs `shows`, others `theirs`, `ours` and `why`")

    @property
    def command(self) -> str:
        """Its name."""
        return self.run.split()[0]

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command line."""
        return shlex.split(filled(self.run, values))


@dataclass(slots=True, kw_only=True)
class Side:
    """One broker: the values of words in <>, and what commands have printed."""

    values: dict[str, str]
    printed: list[str] = field(default_factory=list)


def filled(text: str, values: Mapping[str, str], *, is_pattern: bool = False) -> str:
    """Replace the words in <>."""

    def value(found: re.Match[str]) -> str:
        known = values.get(found[1], found[0])
        return re.escape(known) if is_pattern else known

    return re.sub(r"<(\w+)>", value, text)


def load(line: str) -> list[Row]:
    """The rows that a version runs: "5" or "4"."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))["rows"]
    rows = [
        Row(**{name: tuple(v) if isinstance(v, list) else v for name, v in each.items()})
        for each in found
    ]
    return [row for row in rows if row.line in ("", line)]


def missing(patterns: Iterable[str], side: Side, printed: str) -> list[str]:
    """The patterns that are not in what was printed."""
    wanted = [filled(each, side.values, is_pattern=True) for each in patterns]
    return [each for each in wanted if not re.search(each, printed)]


def faults(row: Row, theirs: Side, ours: Side, at: int) -> list[str]:
    """What is not as the row says; nothing if all is."""
    found = []
    for name, side, patterns in (
        ("the broker", theirs, row.shows or row.theirs),
        ("rockgate", ours, row.shows or row.ours),
    ):
        printed = side.printed[at]
        found += [f"{name} does not print {each!r}" for each in missing(patterns, side, printed)]
        may_fail = row.outcome in MAY_FAIL or (row.outcome == "refused" and side is ours)
        # A command that is interrupted says so.
        if FAILED.search(printed) and not may_fail and row.seconds == SECONDS_MAX:
            found.append(f"{name} fails")
    return found


def record(
    version: str, rows: Iterable[tuple[Row, list[str]]], date: str, path: Path = RESULTS
) -> None:
    """Write the outcomes of a version, each row with its faults; other versions stay."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = []
    for row, wrong in rows:
        cell = {"run": row.run, "outcome": "fails" if wrong else row.outcome}
        why = "; ".join(wrong) or row.why
        found.append({**cell, "why": why} if why else cell)
    known[version] = {"date": date, "rows": found}
    text = json.dumps(dict(sorted(known.items(), reverse=True)), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
