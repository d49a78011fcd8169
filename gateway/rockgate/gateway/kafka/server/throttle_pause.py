"""Pauses reading from a throttled connection until its throttle time is over.

Who is not read from is not heard to hang up either. So it is looked at once a second whether the
client is still there: one that dials again and again would leave a socket each time.
"""

from __future__ import annotations

from collections.abc import Callable

from rockgate.gateway.kafka.request.handler import Peer, do_nothing
from rockgate.gateway.net.clock import Clock, Timer

LOOK_SECONDS = 1.0


class Mute:
    """On while a client has to wait. Owned by its session."""

    __slots__ = ("_clock", "_go_on", "_look_after", "_timer", "_until", "is_on")

    def __init__(
        self,
        clock: Clock,
        go_on: Callable[[], None],
        look_after: Callable[[], None] = do_nothing,
    ) -> None:
        """`look_after` is called now and then while it is on."""
        self._clock = clock
        self._go_on = go_on
        self._look_after = look_after
        self._timer: Timer | None = None
        self._until = 0.0
        self.is_on = False

    def begin(self, peer: Peer) -> None:
        """Wait as long as the peer was told to; of several times the longest counts."""
        self._until = max(self._until, self._clock.time() + peer.throttle_ms / 1000)
        peer.throttle_ms = 0
        self.is_on = True
        if self._timer is None:
            self._arm()

    def end(self) -> None:
        """Wait no longer."""
        self.is_on = False
        self._until = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget(self) -> None:
        """Wait no longer, and for nobody: the connection is gone."""
        self.end()
        self._go_on = self._look_after = do_nothing

    def _arm(self) -> None:
        left = max(0.0, self._until - self._clock.time())
        self._timer = self._clock.call_later(min(left, LOOK_SECONDS), self._look)

    def _look(self) -> None:
        self._timer = None
        if self._clock.time() < self._until:
            self._arm()
            self._look_after()
            return
        self.is_on = False
        self._go_on()
