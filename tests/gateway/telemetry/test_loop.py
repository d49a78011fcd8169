from tests.gateway.fakes import HandClock

from rockgate.gateway.telemetry.loop import INTERVAL_SECONDS, LoopWatch


class LateClock(HandClock):
    """A loop that is held up: its timers ring late."""

    late = 0.0

    def advance(self, seconds: float) -> None:
        for timer in self.timers:
            timer.at += self.late
        super().advance(seconds + self.late)


def test_a_loop_on_time_is_not_late() -> None:
    clock = HandClock()
    watch = LoopWatch(clock)
    clock.advance(INTERVAL_SECONDS * 10.5)
    assert watch.lateness.count == 10
    assert watch.lateness.seconds < 1e-6


def test_what_holds_the_loop_up_is_seen() -> None:
    clock = LateClock()
    watch = LoopWatch(clock)
    clock.late = 0.3
    clock.advance(INTERVAL_SECONDS)
    assert watch.lateness.count == 1
    assert abs(watch.lateness.seconds - 0.3) < 1e-6
    watch.stop()
    assert clock.timers == []
