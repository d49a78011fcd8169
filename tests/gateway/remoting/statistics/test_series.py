"""The history of a label: what its windows report at any time."""

from tests.seeds import seeded

from rockgate.gateway.remoting.statistics.series import (
    SNAPSHOTS_MAX,
    STEP_MS,
    Field,
    Series,
    Span,
)

DAY_MS = 86_400_000


def sampled(series: Series, now_ms: int) -> None:
    for span in Span:
        if now_ms % STEP_MS[span] == 0:
            series.sample(span, now_ms)


def test_a_window_reports_what_was_counted_before_its_first_snapshot() -> None:
    series = Series(0)
    series.times, series.count, series.size = 1, 8, 4_000
    window = series.window(Span.MINUTE, Field.COUNT, 5_000)
    assert (window.total, window.times, window.average) == (8, 1, 8.0)
    # Not 8 in 5 seconds: a rate is over one step at least.
    assert window.per_second == 0.8
    assert series.window(Span.DAY, Field.SIZE, 5_000).total == 4_000


def test_a_label_that_is_a_moment_old_has_no_huge_rate() -> None:
    series = Series(1_000)
    series.count = 1_000_000
    assert series.window(Span.MINUTE, Field.COUNT, 1_000).per_second == 100_000


def test_windows_forget_what_is_older_than_they_are() -> None:
    series = Series(0)
    for now_ms in range(0, 2 * DAY_MS + 1, 10_000):
        if now_ms == 60_000:
            series.times, series.count = 1, 100
        sampled(series, now_ms)
        if now_ms == 70_000:
            assert [series.window(span, Field.COUNT, now_ms).total for span in Span] == [100] * 3
        if now_ms == 180_000:
            totals = [series.window(span, Field.COUNT, now_ms).total for span in Span]
            assert totals == [0, 100, 100]
        if now_ms == 2 * 3_600_000:
            totals = [series.window(span, Field.COUNT, now_ms).total for span in Span]
            assert totals == [0, 0, 100]
    assert [series.window(span, Field.COUNT, now_ms).total for span in Span] == [0, 0, 0]


def test_a_steady_rate_is_reported_as_it_is_in_every_window() -> None:
    series = Series(0)
    for now_ms in range(0, 2 * DAY_MS + 1, 10_000):
        series.times = series.count = now_ms // 100
        sampled(series, now_ms)
    rates = [series.window(span, Field.COUNT, now_ms).per_second for span in Span]
    assert rates == [10.0, 10.0, 10.0]


def test_a_series_holds_a_bounded_number_of_snapshots() -> None:
    series = Series(0)
    for now_ms in range(0, 3 * DAY_MS, 10_000):
        sampled(series, now_ms)
    assert series.snapshot_counts == SNAPSHOTS_MAX


def test_no_window_is_ever_negative_or_without_end() -> None:
    dice = seeded()
    series, now_ms = Series(0), 0
    for _ in range(2_000):
        now_ms += dice.choice((0, 1, 9_999, 10_000, 700_000, 4_000_000))
        series.times += dice.randrange(3)
        series.count += dice.randrange(1_000)
        series.sample(dice.choice(list(Span)), now_ms)
        for span in Span:
            window = series.window(span, Field.COUNT, now_ms)
            assert 0 <= window.total <= series.count
            assert 0 <= window.per_second <= series.count / (STEP_MS[span] / 1000)


def test_what_begins_with_unknown_counters_reports_only_what_comes_later() -> None:
    series = Series(0)
    series.begin_at(5, 500, 9_000)
    assert series.window(Span.DAY, Field.COUNT, 1).total == 0
    series.times, series.count = 6, 501
    assert series.window(Span.DAY, Field.COUNT, 1).total == 1
