"""A benchmark that runs: its command line, its progress, and the samples it has so far."""

import argparse
import statistics
import time

from bench.measure.results import Report


def command_line(name: str, description: str | None, *, quick: str) -> argparse.ArgumentParser:
    """The command line of `python -m bench.<name>`; `quick` says what its smoke test is."""
    found = argparse.ArgumentParser(
        prog=f"python -m bench.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--quick", action="store_true", help=quick)
    return found


class Sampling:
    """What was measured so far, shown as it comes."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """Show progress."""
        print(f"[{time.monotonic() - self._began:5.0f} s] {text}", flush=True)

    def add(self, case: str, name: str, value: float) -> None:
        """Keep one sample and show it."""
        self.note(case, name, value)
        self.tell(f"{case}: {name} {value:,.6g}")

    def note(self, case: str, name: str, value: float) -> None:
        """Keep one sample."""
        samples = self.report.samples.setdefault(case, {}).setdefault(name, [])
        samples.append(round(float(value), 3))

    def median(self, case: str, name: str) -> float:
        """The middle of what a contender showed in a case."""
        return statistics.median(self.report.samples[case][name])
