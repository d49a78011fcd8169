"""What a job says: lines in a file, one line on a terminal, objects for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

from rockgate.pipeline.report.progress import Reporter


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def clock(*seconds: float) -> Callable[[], float]:
    times = iter(seconds)
    return lambda: next(times)


def test_each_step_is_a_line_in_a_file() -> None:
    out = io.StringIO()
    reporter = Reporter("archive", out=out, clock=clock(0, 2, 3, 4))
    reporter.step(0, 1000)
    reporter.step(1, 500, "2 s behind")
    reporter.done("archived")
    assert out.getvalue().splitlines() == [
        "archive: step 0: 1,000 records in 2.0 s (500/s), 1,000 total",
        "archive: step 1: 500 records in 1.0 s (500/s), 1,500 total; 2 s behind",
        "archive: archived; 1,500 records in 4.0 s",
    ]


def test_steps_overwrite_each_other_on_a_terminal_and_other_words_do_not() -> None:
    out = Screen()
    reporter = Reporter("archive", out=out, clock=clock(0, 1, 2, 3))
    reporter.step(0, 1)
    reporter.step(1, 1)
    reporter.say("merged")
    assert out.getvalue().count("\r") == 2
    assert out.getvalue().endswith("total\narchive: merged\n")


def test_programs_get_objects() -> None:
    out = io.StringIO()
    reporter = Reporter("archive", out=out, is_json=True, clock=clock(0, 2, 3))
    reporter.say("created", topic="t")
    reporter.step(0, 10)
    reporter.done()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["created", "step", "done"]
    assert events[1] | {"rate": 5.0} == events[1]


def test_quiet_leaves_the_last_line() -> None:
    out = io.StringIO()
    reporter = Reporter("archive", out=out, is_quiet=True, clock=clock(0, 1, 2))
    reporter.say("x")
    reporter.step(0, 7)
    reporter.done()
    assert out.getvalue() == "archive: 7 records in 2.0 s\n"
