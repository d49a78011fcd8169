"""The benchmark's own arithmetic; the servers in it are made of paper."""

from dataclasses import dataclass

import pytest
from bench.kafka import CASES, FULL, OURS, QUICK, THEIRS, TOGETHER, Run
from bench.load.rdkafka import Load
from bench.measure.results import Report


@dataclass
class Paper:
    bootstrap: str = ""
    address: tuple[str, int] = ("", 0)
    pid: int = 0
    ready_seconds: float = 0.0

    def start(self, seconds_max: float = 0.0) -> object: ...

    def stop(self) -> None: ...


def a_run() -> Run:
    report = Report(name="kafka", question="?", peers={})
    return Run(FULL, report, {OURS: Paper(), THEIRS: Paper()})


def test_who_begins_alternates_from_round_to_round() -> None:
    turns = [(index, name) for index, name, _ in a_run().turns()]
    assert turns == [(0, OURS), (0, THEIRS), (1, THEIRS), (1, OURS), (2, OURS), (2, THEIRS)]


def test_a_ratio_is_that_of_the_medians() -> None:
    run = a_run()
    for value in (10, 30, 1000):
        run.add("produce, MB/s", OURS, value)
    for value in (20, 1, 25):
        run.add("produce, MB/s", THEIRS, value)
    run.ratio("produce, MB/s", at_least=1.2)
    [bar] = run.report.bars
    assert (bar.measured, bar.holds) == (1.5, True)


def test_the_quick_plan_has_every_case_and_size_of_the_full_one() -> None:
    assert QUICK.megabytes.keys() == FULL.megabytes.keys()
    assert QUICK.partition_counts
    assert set(TOGETHER) < set(CASES)


def test_rates_count_payload_in_millions_of_bytes() -> None:
    load = Load(count=1000, payload_bytes=2_000_000, seconds=0.5)
    assert load.megabytes_per_second == pytest.approx(4.0)
    assert load.per_second == pytest.approx(2000.0)
