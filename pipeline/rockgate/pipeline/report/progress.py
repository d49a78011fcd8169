"""What a job says while it runs: one line for each step, on standard error.

On a terminal the line of a step overwrites the one before; in a file each stays. `json` writes
objects instead, for programs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO


class Reporter:
    """Reports progress. `is_quiet` leaves only the final result."""

    def __init__(
        self,
        job: str,
        *,
        out: TextIO | None = None,
        is_json: bool = False,
        is_quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._out = out or sys.stderr
        self._is_json = is_json
        self._is_quiet = is_quiet
        self._clock = clock
        self._began = clock()
        self._last_step = self._began
        self._is_line_open = False
        self.records = 0
        """The number of records of all steps."""

    def say(self, text: str, **fields: Any) -> None:
        """Print a line that stays on the screen."""
        if self._is_quiet:
            return
        if self._is_json:
            self._write(json.dumps({"job": self._job, "event": text, **fields}) + "\n")
            return
        self._end_line()
        self._write(f"{self._job}: {text}\n")

    def step(self, number: int, records: int, note: str = "") -> None:
        """One step is done."""
        now = self._clock()
        seconds, self._last_step = max(now - self._last_step, 1e-9), now
        self.records += records
        if self._is_quiet:
            return
        rate = records / seconds
        if self._is_json:
            event = {"step": number, "records": records, "total": self.records, "rate": rate}
            self._write(json.dumps({"job": self._job, "event": "step", **event}) + "\n")
            return
        text = (
            f"{self._job}: step {number}: {records:,} records in {seconds:.1f} s "
            f"({rate:,.0f}/s), {self.records:,} total{note and f'; {note}'}"
        )
        if self._out.isatty():
            self._write(f"\r\x1b[K{text}")
            self._is_line_open = True
        else:
            self._write(text + "\n")

    def done(self, text: str = "") -> None:
        """The last line."""
        seconds = self._clock() - self._began
        summary = f"{self.records:,} records in {seconds:.1f} s"
        if self._is_json:
            event = {"records": self.records, "seconds": round(seconds, 3), "note": text}
            self._write(json.dumps({"job": self._job, "event": "done", **event}) + "\n")
            return
        self._end_line()
        self._write(f"{self._job}: {text and f'{text}; '}{summary}\n")

    def _end_line(self) -> None:
        if self._is_line_open:
            self._write("\n")
            self._is_line_open = False

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
