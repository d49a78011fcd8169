from rockgate.gateway.telemetry.durations import BOUNDS, Durations


def test_a_duration_falls_into_the_first_bucket_that_holds_it() -> None:
    durations = Durations((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        durations.add(seconds)
    assert durations.counts == [2, 1, 1]
    assert durations.count == 4
    assert durations.seconds == 7.65


def test_bounds_grow() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
