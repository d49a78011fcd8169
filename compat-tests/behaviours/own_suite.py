"""What a client's own test suite says of a broker: recorded beside what it says of Apache Kafka."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path

from behaviours.recording import VARIABLE
from bench.peers import jars
from suites import PEER_VARIABLE, results_at

STATES = ("passed", "failed", "skipped")
OURS = "rockgate"


def peer() -> str:
    """The broker of this run."""
    asked = os.environ.get(PEER_VARIABLE)
    return f"Apache Kafka {jars.version('kafka')}" if asked == "kafka" else asked or OURS


def record(client: str, states: Mapping[str, str]) -> None:
    """Write how many of a suite's tests passed, and which did not, if a run wants results.

    `states` has one of STATES for each test.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    counted = {state: sorted(n for n, s in states.items() if s == state) for state in STATES}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with results_at(Path(path)) as results:
        brokers = results.setdefault("own_suites", {}).setdefault(client, {})
        brokers[peer()] = {
            "date": today,
            "passed": len(counted["passed"]),
            "failed": counted["failed"],
            "skipped": counted["skipped"],
        }
