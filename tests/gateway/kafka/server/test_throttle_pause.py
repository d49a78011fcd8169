from tests.gateway.fakes import HandClock
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.server.throttle_pause import ThrottlePause


class Pausing:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.gone_on: list[float] = []
        self.pause = ThrottlePause(self.clock, lambda: self.gone_on.append(self.clock.now))

    def begin(self, wait_ms: int) -> None:
        peer = call(0).peer
        peer.throttle_ms = wait_ms
        self.pause.begin(peer)
        assert peer.throttle_ms == 0


def test_a_wait_ends_by_itself() -> None:
    world = Pausing()
    assert not world.pause.is_on
    world.begin(500)
    world.clock.advance(0.49)
    assert world.pause.is_on and world.gone_on == []
    world.clock.advance(0.02)
    assert not world.pause.is_on and world.gone_on == [1000.5]


def test_of_several_waits_the_longest_counts() -> None:
    world = Pausing()
    world.begin(500)
    world.clock.advance(0.1)
    world.begin(1_000)
    world.begin(10)
    world.clock.advance(0.9)
    assert world.pause.is_on
    world.clock.advance(0.2)
    assert not world.pause.is_on and world.gone_on == [1001.1]


def test_a_wait_can_be_ended() -> None:
    world = Pausing()
    world.begin(500)
    world.pause.end()
    assert not world.pause.is_on and world.clock.timers == []


def test_it_is_looked_at_now_and_then_while_it_lasts() -> None:
    clock, looks = HandClock(), list[float]()
    pause = ThrottlePause(clock, lambda: None, lambda: looks.append(clock.now))
    peer = call(0).peer
    peer.throttle_ms = 2_500
    pause.begin(peer)
    clock.advance(10)
    assert looks == [1001.0, 1002.0] and not pause.is_on


def test_a_wait_that_was_ended_does_not_lengthen_the_next() -> None:
    world = Pausing()
    world.begin(60_000)
    world.pause.end()
    world.begin(500)
    world.clock.advance(0.6)
    assert not world.pause.is_on
