"""Rates of the last seconds, latency classes of the last minute, and totals at midnight."""

import time

import pytest

from rockgate.gateway.remoting.statistics.mornings import Mornings
from rockgate.gateway.remoting.statistics.put_latency import CLASSES, PutLatency
from rockgate.gateway.remoting.statistics.rates import Rates
from rockgate.gateway.telemetry.durations import BOUNDS, Durations

DAY_MS = 86_400_000


def test_rates_are_over_ten_seconds_a_minute_and_ten_minutes() -> None:
    rates = Rates()
    total = 0
    for second in range(1_000):
        total += 100 if second >= 980 else 0
        rates.note(second * 1_000, (total, 0))
    assert rates.text(0) == f"100.0 {2_000 / 60} {2_000 / 600}"
    assert rates.text(1) == "0.0 0.0 0.0"


def test_before_there_is_a_second_note_every_rate_is_zero() -> None:
    rates = Rates()
    assert rates.text(0) == "0.0 0.0 0.0"
    rates.note(5_000, (1_000_000,))
    assert rates.text(0) == "0.0 0.0 0.0"
    rates.note(5_001, (1_000_000,))
    assert not rates.is_due(6_000) and rates.is_due(6_001)


def test_a_pause_of_the_process_gives_no_false_rate() -> None:
    rates = Rates()
    rates.note(0, (0,))
    rates.note(3_600_000, (3_600,))
    assert rates.rate(0, 10) == 1.0


def test_every_class_of_latency_is_a_bound_of_the_histograms() -> None:
    assert {bound for _, bound in CLASSES[:-1]} <= set(BOUNDS)


def test_puts_of_the_last_minute_that_is_over_are_reported_by_class() -> None:
    sends, produces = Durations(), Durations()
    latency = PutLatency([sends, produces], 0)
    for seconds in (0.0002, 0.0004, 0.004, 0.15, 2.5):
        sends.add(seconds)
    produces.add(12.0)
    latency.turn(59_999)
    assert ":1" not in latency.by_class()
    latency.turn(60_000)
    assert latency.by_class() == (
        "[<=0ms]:2 [0~10ms]:1 [10~50ms]:0 [50~100ms]:0 [100~200ms]:1 [200~500ms]:0 "
        "[500ms~1s]:0 [1~2s]:0 [2~3s]:1 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:1 "
    )
    latency.turn(120_000)
    assert ":1" not in latency.by_class()


@pytest.mark.parametrize(("part", "lower", "upper"), [(0.5, 0.1, 0.25), (0.99, 50, 100)])
def test_percentiles_lie_in_the_bucket_of_their_rank(
    part: float, lower: float, upper: float
) -> None:
    sends = Durations()
    for _ in range(98):
        sends.add(0.0002)
    for _ in range(2):
        sends.add(0.09)
    latency = PutLatency([sends], 0)
    assert latency.percentile_ms(part) == 0.0
    latency.turn(60_000)
    assert lower <= latency.percentile_ms(part) <= upper


def test_a_day_begins_at_midnight() -> None:
    mornings = Mornings()
    noon = int(time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))) * 1_000
    mornings.turn(noon, 10, 5)
    assert (mornings.yesterday, mornings.today) == ((0, 0), (0, 0))
    mornings.turn(noon + DAY_MS, 30, 25)
    mornings.turn(noon + DAY_MS + 1_000, 31, 26)
    assert (mornings.yesterday, mornings.today) == ((0, 0), (30, 25))
    mornings.turn(noon + 2 * DAY_MS, 40, 30)
    assert (mornings.yesterday, mornings.today) == ((30, 25), (40, 30))


def test_a_clock_that_is_a_day_off_gives_no_negative_day() -> None:
    mornings = Mornings()
    noon = int(time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))) * 1_000
    counts = iter(range(100))
    for days in (0, 1, -1, 5, 4, 5, -30, 1):
        put = next(counts)
        mornings.turn(noon + days * DAY_MS, put, put)
        assert mornings.yesterday <= mornings.today <= (put, put)
