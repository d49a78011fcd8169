"""The benchmark's own arithmetic and its order; the client in it is made of paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.load import rdkafka
from bench.load.rdkafka import Load
from bench.measure.results import Report
from bench.remoting import CASES, FULL, OURS, PARTS, QUICK, SENDS, THEIRS, Plan, Run

PLAN = Plan(rounds=3, seconds=1.0, warm_up_seconds=0.5, messages=700)
RATES = {"ours": 300.0, "theirs": 100.0}


class Paper:
    """Reports a rate for each server, and records its calls."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, float, int]] = []

    def run(
        self, namesrv: str, mode: str, topic: str, seconds: float, number: int
    ) -> tuple[float, float]:
        self.told.append((namesrv, mode, topic, seconds, number))
        return RATES[namesrv], 1e6 / RATES[namesrv]


class Held:
    """A server that says whether it stands still."""

    is_held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        self.is_held = True
        yield
        self.is_held = False


@pytest.fixture
def run() -> Run:
    report = Report(name="remoting", question="?", peers={})
    others = {OURS: Held(), THEIRS: Held()}
    return Run(PLAN, report, Paper(), {OURS: "ours", THEIRS: "theirs"}, "kafka:1", others)


def told(run: Run) -> list[tuple[str, str, str, float, int]]:
    assert isinstance(run.client, Paper)
    return run.client.told


def test_both_servers_are_warmed_up_with_every_load_before_anything_counts(run: Run) -> None:
    CASES["sends"](run)
    first = told(run)[: 2 * len(SENDS)]
    assert {(namesrv, mode, number) for namesrv, mode, _, _, number in first} == {
        (namesrv, send.mode, send.number) for namesrv in RATES for send in SENDS.values()
    }
    assert {(topic, seconds) for _, _, topic, seconds, _ in first} == {("warm-up", 0.5)}
    assert "warm-up" not in {topic for _, _, topic, _, _ in told(run)[2 * len(SENDS) :]}


def test_a_kind_of_send_is_measured_alone_where_only_that_is_asked_for(run: Run) -> None:
    PARTS["batches"](run)
    assert {(mode, number) for _, mode, _, _, number in told(run)} == {("batch", 100)}
    assert [bar.name for bar in run.report.bars] == ["batches of 100"]


def test_in_each_case_the_servers_take_turns_and_who_begins_alternates(run: Run) -> None:
    CASES["sends"](run)
    counted = told(run)[2 * len(SENDS) :]
    turns = [namesrv for namesrv, mode, _, _, number in counted if (mode, number) == ("sync", 1)]
    assert turns == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_while_a_server_is_measured_only_the_other_is_held_still(run: Run) -> None:
    seen = [
        (name, [each for each, other in run.others.items() if other.is_held])  # type: ignore[attr-defined]  # Held
        for turn in (0, 1)
        for name, _ in run.order(turn)
    ]
    assert seen == [(OURS, [OURS]), (THEIRS, [THEIRS]), (THEIRS, [THEIRS]), (OURS, [OURS])]
    assert not any(other.is_held for other in run.others.values())  # type: ignore[attr-defined]  # Held


def test_rates_are_compared_by_their_medians_and_times_the_other_way_round(run: Run) -> None:
    for case in ("sends", "consumes"):
        CASES[case](run)
    bars = {bar.name: bar for bar in run.report.bars}
    assert bars["sync, 32 threads"].measured == bars["consume own kind"].measured == 3.0
    assert bars["sync, 1 thread, median"].measured == pytest.approx(0.33)
    assert all(bar.holds for bar in bars.values())
    limits = {bar.name: bar.limits for bar in bars.values()}
    assert limits == {
        "sync, 32 threads": {"at_least": 1.2},
        "sync, 1 thread, median": {"at_most": 0.9},
        "async, 1000 in flight": {"at_least": 1.5},
        "batches of 100": {"at_least": 1.2},
        "consume own kind": {"at_least": 0.8},
    }


def test_what_crosses_over_is_compared_with_as_much_of_the_reader_s_own_kind(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, int]] = []

    def consume(bootstrap: str, topic: str, size: int, count: int) -> Load:
        read.append((topic, count))
        seconds = 4.0 if topic == "by-rocketmq" else 1.0
        return Load(count=count, payload_bytes=count * size, seconds=seconds)

    def produce(bootstrap: str, topic: str, size: int, count: int) -> None:
        assert (bootstrap, topic, count) == ("kafka:1", "by-kafka", PLAN.messages)

    monkeypatch.setattr(rdkafka, "consume", consume)
    monkeypatch.setattr(rdkafka, "produce", produce)
    CASES["crossing"](run)
    assert set(read) == {("by-kafka", PLAN.messages), ("by-rocketmq", PLAN.messages)}
    bars = {bar.name: (bar.measured, bar.holds) for bar in run.report.bars}
    assert bars == {
        "RocketMQ reads the other's, beside its own": (1.0, True),
        "Kafka reads the other's, beside its own": (0.25, False),
    }


def test_the_full_plan_takes_medians_of_three_and_the_quick_one_has_every_case() -> None:
    assert FULL.rounds == 3 and FULL.warm_up_seconds >= 5
    assert QUICK.rounds >= 1 and QUICK.messages % 100 == 0 and FULL.messages % 100 == 0
