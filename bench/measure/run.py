"""A running benchmark: its command line, its progress, and its samples so far."""

import argparse
import statistics
import time

from bench.measure.results import Report


def command_line(name: str, description: str | None, *, quick: str) -> argparse.ArgumentParser:
    """The command line of `python -m bench.<name>`; `quick` describes its smoke test."""
    found = argparse.ArgumentParser(
        prog=f"python -m bench.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--quick", action="store_true", help=quick)
    return found


class Sampling:
    """The samples so far, printed as they come."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """Print progress."""
        print(f"[{time.monotonic() - self._began:5.0f} s] {text}", flush=True)

    def add(self, case: str, name: str, value: float) -> None:
        """Add a sample and print it."""
        self.note(case, name, value)
        self.tell(f"{case}: {name} {value:,.6g}")

    def note(self, case: str, name: str, value: float) -> None:
        """Add a sample."""
        samples = self.report.samples.setdefault(case, {}).setdefault(name, [])
        samples.append(round(float(value), 3))

    def median(self, case: str, name: str) -> float:
        """The median of a contender in a case."""
        return statistics.median(self.report.samples[case][name])
