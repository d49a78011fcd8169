"""Runs kcat: to its end, or beside the test until it is stopped."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from behaviours.driver import SECONDS_MAX
from behaviours.running import Running

ASSIGNED = re.compile(r"% Group \S+ rebalanced \(.*\): (assigned|incremental_assigned): (.*)")
PARTITION = re.compile(r"\[(\d+)\]")


class Failed(Exception):
    """kcat ended with a status other than 0."""


class Kcat:
    """One kcat against one server."""

    def __init__(self, command: Sequence[str], bootstrap: str) -> None:
        self._command = [*command, "-b", bootstrap]

    def run(self, *flags: str, typed: bytes = b"") -> bytes:
        """Run it with an input; return its output."""
        done = subprocess.run(
            [*self._command, *flags], input=typed, capture_output=True, timeout=2 * SECONDS_MAX
        )
        if done.returncode:
            raise Failed(done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def started(self, *flags: str) -> Reader:
        """Start it beside the test."""
        return Reader([*self._command, *flags])

    def read(self, topic: str, *flags: str) -> list[Mapping[str, Any]]:
        """The messages of a topic as JSON, from its beginning or as the flags say."""
        place = () if "-o" in flags else ("-o", "beginning")
        lines = self.run("-C", "-t", topic, "-e", "-q", "-J", *place, *flags).splitlines()
        return [json.loads(line) for line in lines]


class Reader(Running):
    """A running kcat, possibly as a member of a group."""

    @property
    def assignment(self) -> set[int]:
        """The partitions of its last rebalance."""
        found = [match for line in list(self.told) if (match := ASSIGNED.match(line))]
        return {int(each) for each in PARTITION.findall(found[-1][2])} if found else set()

    @property
    def rebalance_count(self) -> int:
        """How often it got partitions."""
        return sum(1 for line in list(self.told) if ASSIGNED.match(line))
