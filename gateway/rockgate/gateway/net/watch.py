"""The timeouts of a connection: idle, slow to send, slow to read. Time is a parameter.

A connection without requests and without bytes is idle. One that has begun a request must finish
it. One with unread responses must read at least a byte. Time in which we did not read, because of
our own limits, is never counted against the client.
"""

from enum import Enum

from rockgate.gateway.net.limits import Limits


class Verdict(Enum):
    """Why a connection is closed."""

    IDLE = "idle"
    SLOW_SENDER = "request did not arrive in time"
    SLOW_READER = "client does not read its responses"


class Watch:
    """The timers of one connection. The session updates them and checks them periodically."""

    __slots__ = ("_limits", "frame_at", "read_at", "taken_at", "taken_bytes")

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self.read_at = now
        """When the last byte arrived, or reading resumed."""
        self.frame_at = now
        """When the current request began to arrive."""
        self.taken_at = now
        """When the client last read a byte of its unread responses."""
        self.taken_bytes = 0

    def look(
        self,
        now: float,
        *,
        unread_taken: int | None,
        is_reading: bool,
        has_partial: bool,
        is_busy: bool,
    ) -> tuple[Verdict | None, float]:
        """The exceeded limit, if any, and the seconds until the next check.

        `unread_taken` is the number of bytes that the client has read in total, while it leaves too
        much unread.
        """
        limits = self._limits
        verdict, since, most = None, now, limits.look_seconds
        if unread_taken is not None:
            if unread_taken > self.taken_bytes:
                self.taken_at, self.taken_bytes = now, unread_taken
            verdict, since, most = Verdict.SLOW_READER, self.taken_at, limits.unread_seconds_max
        elif is_reading and has_partial:
            verdict, since, most = Verdict.SLOW_SENDER, self.frame_at, limits.frame_seconds_max
        elif is_reading and not is_busy:
            verdict, since, most = Verdict.IDLE, self.read_at, limits.idle_seconds_max
        left = since + most - now
        if verdict is not None and left <= 0:
            return verdict, 0.0
        return None, min(left, limits.look_seconds)
