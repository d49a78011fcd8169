"""Limits on suspended pulls: per connection, in total, and in memory.

A suspended pull is a request without an answer for up to a minute, with a poll, a timer and its
header. One beyond the limits is refused as busy, after which RocketMQ's clients back off; if it
were answered with nothing found, they would retry at once.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.remoting.server.caller import Caller

POLL_BYTES: Final = 3_000
"""Memory of a suspended pull besides its request."""


class LongPolls:
    """Counts suspended pulls."""

    def __init__(self, connection_max: int, bytes_max: int) -> None:
        self._connection_max = connection_max
        self._bytes_max = bytes_max
        self._counts: dict[Caller, int] = {}
        self.count = 0
        self.size = 0
        """Approximate memory of all of them."""

    def begin(self, caller: Caller, request_bytes: int) -> str | None:
        """Admit a pull, or return why it may not be suspended; `end` releases it."""
        count = self._counts.get(caller, 0)
        if count >= self._connection_max:
            return (
                f"Connection has {count:,} suspended pulls; the maximum is "
                "remoting.waiting_pulls_max."
            )
        size = request_bytes + POLL_BYTES
        if self.size + size > self._bytes_max:
            return (
                f"{self.count:,} suspended pulls use {self.size:,} bytes; the maximum is "
                "remoting.waiting_bytes_max."
            )
        self._counts[caller] = count + 1
        self.count += 1
        self.size += size
        return None

    def end(self, caller: Caller, request_bytes: int) -> None:
        """A suspended pull has ended."""
        self.count -= 1
        self.size -= request_bytes + POLL_BYTES
        count = self._counts[caller] - 1
        if count:
            self._counts[caller] = count
        else:
            del self._counts[caller]
