"""The results of a benchmark: samples, bars and environment, as one JSON file.

A bar only counts if its file is committed. The file contains the commit, the processor and the
Python version, but no host, user or path.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "results"


class LeftOut(Exception):
    """A benchmark that cannot run here, and why: something it needs is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar for one number: an upper or a lower limit."""

    name: str
    measured: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str

    @property
    def holds(self) -> bool:
        """Whether the number is within the limits."""
        if self.at_most is not None and self.measured > self.at_most:
            return False
        return self.at_least is None or self.measured >= self.at_least

    @property
    def limits(self) -> dict[str, float]:
        """Its limits, by name."""
        both = {"at_most": self.at_most, "at_least": self.at_least}
        return {name: limit for name, limit in both.items() if limit is not None}

    def line(self) -> str:
        """One line for display."""
        verdict = "holds" if self.holds else "FAILS"
        limits = ", ".join(f"{name.replace('_', ' ')} {x:g}" for name, x in self.limits.items())
        return f"{verdict}  {self.name}: {self.measured:g} {self.unit}, {limits}"

    def content(self) -> dict[str, Any]:
        """The part that goes into the file."""
        content = {"name": self.name, "measured": self.measured, **self.limits}
        return {**content, "unit": self.unit, "holds": self.holds}


@dataclass(slots=True, kw_only=True)
class Report:
    """The results of one run of a benchmark."""

    name: str
    question: str
    peers: dict[str, str]
    """The peers, and their versions."""
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """All samples by case and contender; the case's name contains the unit."""
    command: str = ""
    """The command to run it again; empty if that is `python -m bench` and the name."""
    notes: dict[str, Any] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every bar holds."""
        return all(bar.holds for bar in self.bars)


def write(report: Report, folder: Path = FOLDER) -> Path:
    """Write the report to `<name>-<date>.json`; a later run on the same day replaces it."""
    now = datetime.datetime.now(datetime.UTC)
    content = {
        "benchmark": report.name,
        "question": report.question,
        "command": report.command or f"python -m bench {report.name}",
        "time": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "peers": report.peers,
        "holds": report.holds,
        "bars": [bar.content() for bar in report.bars],
        "notes": report.notes,
        "samples": report.samples,
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{report.name}-{now:%Y-%m-%d}.json"
    path.write_text(_text(content), encoding="utf-8")
    return path


def conclude(report: Report, *, is_saved: bool) -> int:
    """Print the bars, write the report if requested, and return the exit status."""
    for bar in report.bars:
        print(bar.line())
    if is_saved:
        print(f"written to bench/results/{write(report).name}")
    return 0 if report.holds else 1


def machine() -> dict[str, Any]:
    """Return processor, number of cores, system and Python version."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def commit() -> str:
    """Return the measured commit; with `+changes` if the working tree differed from it."""
    root = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "HEAD") or "unknown") + ("+changes" if changed else "")


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _text(content: dict[str, Any]) -> str:
    """JSON for reading, with a list of samples on one line."""
    rows: dict[str, str] = {}

    def fold(value: Any) -> Any:
        if isinstance(value, list) and value and all(isinstance(each, float) for each in value):
            key = f"@{len(rows)}@"
            rows[f'"{key}"'] = json.dumps(value)
            return key
        if isinstance(value, dict):
            return {name: fold(inner) for name, inner in value.items()}
        return value

    text = json.dumps(fold(content), indent=2)
    for key, row in rows.items():
        text = text.replace(key, row, 1)
    return text + "\n"
