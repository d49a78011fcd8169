"""Throttled connections: responses have the throttle time, and nothing is read in the meantime.

Without reading, a hangup is not noticed either. So it is checked once a second whether the client
is still connected: one that reconnects repeatedly would leave a socket each time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from rockgate.gateway.kafka.request.handler import Answer, Peer, do_nothing
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.schema.kinds import Fixed

LOOK_SECONDS = 1.0
_INT32 = struct.Struct(">i")
_THROTTLE_TIME = "throttle_time_ms"


class ThrottlePause:
    """Active while a client is throttled. Owned by its session."""

    __slots__ = ("_clock", "_look_after", "_resume", "_timer", "_until", "is_on")

    def __init__(
        self,
        clock: Clock,
        resume: Callable[[], None],
        look_after: Callable[[], object] = do_nothing,
    ) -> None:
        """`look_after` is called periodically while it is active."""
        self._clock = clock
        self._resume = resume
        self._look_after = look_after
        self._timer: Timer | None = None
        self._until = 0.0
        self.is_on = False

    def begin(self, peer: Peer) -> None:
        """Wait for the throttle time that the client was sent; of several the longest counts."""
        self._until = max(self._until, self._clock.time() + peer.throttle_ms / 1000)
        peer.throttle_ms = 0
        self.is_on = True
        if self._timer is None:
            self._arm()

    def end(self) -> None:
        """End the pause."""
        self.is_on = False
        self._until = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget(self) -> None:
        """End the pause: the connection is closed."""
        self.end()
        self._resume = self._look_after = do_nothing

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
        self._resume()


def with_throttle_time(answer: Answer, api_key: int, version: int, wait_ms: int) -> Answer:
    """The response with its throttle time filled in, if its version has the field."""
    if _is_last(api_key, version):
        # At the end: before the byte of a flexible version that says that no tags follow.
        tail = len(answer[-1]) - (5 if version in APIS[ApiKey(api_key)].flexible else 4)
        return [*answer[:-1], _put(answer[-1], tail, wait_ms)]
    at = _place(api_key, version)
    return answer if at is None else [_put(answer[0], at, wait_ms), *answer[1:]]


@cache
def _is_last(api_key: int, version: int) -> bool:
    """Whether a response ends with the throttle time: Produce, and some about tokens."""
    fields = [
        spec.name
        for spec in declaration_of(APIS[ApiKey(api_key)].response).fields
        if version in spec.versions and spec.tag is None
    ]
    return bool(fields) and fields[-1] == _THROTTLE_TIME


@cache
def _place(api_key: int, version: int) -> int | None:
    """Where a response has the throttle time: nearly all begin with it."""
    at = 0
    for spec in declaration_of(APIS[ApiKey(api_key)].response).fields:
        if version not in spec.versions or spec.tag is not None:
            continue
        if spec.name == _THROTTLE_TIME:
            return at
        if not isinstance(spec.kind, Fixed):
            return None
        at += spec.kind.size
    return None


def _put(buffer: bytes | bytearray | memoryview, at: int, number: int) -> bytes:
    return b"".join((buffer[:at], _INT32.pack(number), buffer[at + 4 :]))
