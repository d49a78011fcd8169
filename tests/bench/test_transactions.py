"""The benchmark's own arithmetic; no server runs here."""

from __future__ import annotations

import pytest
from bench.delay import OURS, THEIRS
from bench.measure.results import Report
from bench.transactions import CLIENTS, bar, case


@pytest.mark.parametrize("clients", CLIENTS)
def test_a_bar_is_the_ratio_of_the_medians_of_its_case(clients: int) -> None:
    report = Report(name="transactions", question="?", peers={})
    report.samples = {case(each): {OURS: [1.0], THEIRS: [100.0]} for each in CLIENTS}
    report.samples[case(clients)] = {OURS: [10.0, 30.0, 1000.0], THEIRS: [25.0, 1.0, 20.0]}
    found = bar(report, clients)
    assert (found.measured, found.holds) == (1.5, True)
    report.samples[case(clients)][OURS] = [23.0]
    assert not bar(report, clients).holds


def test_one_client_and_eight_are_measured() -> None:
    assert CLIENTS == (1, 8)
    assert case(1) != case(8)
