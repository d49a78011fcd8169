"""Runs the suites of all clients as one run: `python compat-tests/suites.py RESULTS`.

Each suite is a pytest process of its own, with a bound on its time. One that fails, hangs or dies
does not stop the others, and what it leaves running is killed before the next one starts. After
every suite the run is written to RESULTS, so that one that is interrupted says how far it came.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMPAT = ROOT / "compat-tests"
LOGS = ROOT / "build" / "compat"

PEER_VARIABLE = "ROCKGATE_COMPAT_PEER"
"""With `kafka`, tests with a shared server run against Apache Kafka: do they match its behaviour?
With `gateway` they run against a gateway to an Apache RocketMQ cluster.
"""
RUN_VARIABLE = "ROCKGATE_COMPAT_RUN"
"""When the whole run began; results that carry it are from that run."""
TAG_VARIABLE = "COMPAT_SUITE"
"""Inherited by everything that a suite starts, also by servers in sessions of their own. Its name
is no setting of the server, so that no environment is without it."""
SECONDS_MAX = 3_600.0
ENDING_SECONDS_MAX = 120.0
"""After an interrupt: for pytest to close its fixtures and to write what it has."""
# A first run also brings and builds the clients, in the set-up of their first tests.
PYTEST = (sys.executable, "-m", "pytest", "-m", "long or not long", "-o", "timeout=900")
NEXT_SPARK = ROOT / ".venv" / "spark-next"

OUTCOMES = {0: "passed", 1: "failed", 2: "interrupted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests to run, and what their process has in its environment."""

    name: str
    path: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a suite ended."""

    outcome: str
    seconds: float
    last_line: str


def all_suites(compat: Path = COMPAT, next_spark: Path = NEXT_SPARK) -> list[Suite]:
    """Every folder with tests, the differential tests, and Spark once more where it is newer.

    Clients' own suites are run on Apache Kafka too, for their counts alone.
    """
    folders = sorted({each.parent for each in compat.glob("*/test_*.py")})
    found = [Suite(name=folder.name, path=folder) for folder in folders]
    found.append(Suite(name="differential", path=compat.parent / "tests" / "differential"))
    found += [
        Suite(
            name=f"{own.parent.name}-on-kafka",
            path=own,
            environ={PEER_VARIABLE: "kafka"},
            arguments=("-k", "listed_once"),
        )
        for own in sorted(compat.glob("*/test_own_suite.py"))
    ]
    if next_spark.is_dir():
        beside = {"ROCKGATE_COMPAT_BESIDE": "1", "PYTHONPATH": str(next_spark)}
        found.append(Suite(name="spark-next", path=compat / "spark", environ=beside))
    return found


def _heed_interrupts() -> None:
    """Handle SIGINT as in a terminal: what a shell runs in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_suite(
    suite: Suite,
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    logs: Path = LOGS,
    seconds_max: float = SECONDS_MAX,
    ending_seconds_max: float = ENDING_SECONDS_MAX,
) -> Outcome:
    """Run one suite to its end or to its bound, and kill what it leaves behind."""
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{suite.name}.log"
    tag = f"{os.getpid()}-{suite.name}"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**environ, **suite.environ, TAG_VARIABLE: tag},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )
        try:
            outcome = outcome_of(process, seconds_max, ending_seconds_max)
        finally:
            left = kill_tagged(tag)
            process.wait()
    if left:
        outcome = f"{outcome}, {len(left)} processes left behind"
    return Outcome(
        outcome=outcome, seconds=time.monotonic() - began, last_line=last_line(log.read_bytes())
    )


def outcome_of(
    process: subprocess.Popen[bytes], seconds_max: float, ending_seconds_max: float
) -> str:
    """Wait for the process; interrupt it at the bound, so that it can say what it has."""
    try:
        status = process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(ending_seconds_max)
        except subprocess.TimeoutExpired:
            return f"killed after {seconds_max + ending_seconds_max:,.0f} s"
        return f"interrupted after {seconds_max:,.0f} s"
    return OUTCOMES.get(status, f"ended with status {status}")


def kill_tagged(tag: str) -> list[int]:
    """Kill every process that has inherited a tag; return their pids."""
    wanted = f"{TAG_VARIABLE}={tag}".encode()
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            # A zombie has no environment, and is not killed again.
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is not ours
    return killed


def last_line(output: bytes) -> str:
    """What pytest said at the end."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip("= ") if lines else ""


@contextmanager
def results_at(path: Path) -> Iterator[dict[str, Any]]:
    """The results, to be changed by one process at a time."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = json.loads(path.read_text("utf-8")) if path.exists() else {"clients": {}}
        yield found
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        aside.replace(path)


def note(path: Path, began: str, commit: str, suite: str, outcome: Outcome) -> None:
    """Write how a suite of the run ended."""
    with results_at(path) as found:
        if found.get("run", {}).get("began") != began:
            found["run"] = {"began": began, "commit": commit, "suites": {}}
        found["run"]["suites"][suite] = {
            "outcome": outcome.outcome,
            "seconds": round(outcome.seconds),
        }


def commit_of(root: Path = ROOT) -> str:
    """The commit that is tested; with a plus if the tree departs from it."""
    git = ("git", "-C", str(root))
    named = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(
        # Pages and results are written by the run itself.
        [*git, "status", "--porcelain", "--", ".", ":!docs", ":!compat-tests/*.json"],
        capture_output=True,
        text=True,
    )
    return named.stdout.strip() + ("+" if changed.stdout.strip() else "")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the suites of all clients as one run.")
    parser.add_argument("results", type=Path, help="the file that results are written to")
    parser.add_argument("--seconds-max", type=float, default=SECONDS_MAX, help="for each suite")
    chosen = parser.parse_args()
    began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    commit = commit_of()
    environ = {
        **os.environ,
        "ROCKGATE_BUDGET": "long",
        "ROCKGATE_COMPAT_RESULTS": str(chosen.results.resolve()),
        RUN_VARIABLE: began,
    }
    suites = all_suites()
    bad = []
    # What a suite has started is killed also when this is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"{len(suites)} suites on {commit}; their output is in {LOGS}", flush=True)
    for suite in suites:
        command = [*PYTEST, *suite.arguments, str(suite.path)]
        outcome = run_suite(suite, command, environ, seconds_max=chosen.seconds_max)
        note(chosen.results, began, commit, suite.name, outcome)
        print(
            f"{suite.name:18} {outcome.seconds:6,.0f} s  {outcome.outcome}: {outcome.last_line}",
            flush=True,
        )
        if outcome.outcome != "passed":
            bad.append(suite.name)
    print(f"not green: {', '.join(bad)}" if bad else "all green", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
