"""The benchmark's own arithmetic; no server runs here."""

from __future__ import annotations

from bench.delay import OURS, THEIRS
from bench.measure.results import Report
from bench.transactions import BARRED, CLIENTS, bar, case


def test_the_bar_is_the_ratio_of_the_medians_with_eight_clients() -> None:
    report = Report(name="transactions", question="?", peers={})
    report.samples = {
        case(1): {OURS: [1.0], THEIRS: [100.0]},
        case(8): {OURS: [10.0, 30.0, 1000.0], THEIRS: [25.0, 1.0, 20.0]},
    }
    found = bar(report)
    assert (found.measured, found.holds) == (1.5, True)
    report.samples[case(8)][OURS] = [19.0]
    assert not bar(report).holds


def test_one_client_and_eight_are_measured() -> None:
    assert (CLIENTS, BARRED) == ((1, 8), 8)
    assert case(1) != case(8)
