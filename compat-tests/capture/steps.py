"""Shared by the scenarios: steps that may fail, with a report.

A scenario is a function of a bootstrap address and a reporter. A step that fails is reported and
the rest continues, because no client supports everything and brokers differ.
"""

import contextlib
from collections.abc import Callable, Iterator

Report = Callable[[str], None]


@contextlib.contextmanager
def step(report: Report, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  any client's own error family: reported, not hidden
        report(f"  {name}: {type(error).__name__}: {str(error)[:120]}")
