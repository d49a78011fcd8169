"""How many requests of each kind wait for their answers, under RocketMQ's names of its queues.

There are no thread pools here, and no queues of theirs. The size of a queue is therefore the number
of requests that were received and are not answered. Pulls and pops that are suspended until a
message arrives are not among them, as they are in no queue of RocketMQ's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from rockgate.gateway.remoting.server.overload import RequestKind

_KINDS: Final = {
    "send": "send",
    "pull": "pull",
    # Lite pulls are pulls, queries are of the kind of all other requests.
    "litePull": "pull",
    "query": "admin",
    "ack": "ack",
}
"""RocketMQ's queues, and our kinds of requests."""
_UNBOUNDED: Final = 2**31 - 1
"""Given as the capacity of what has no bound: tools read it as an int."""


class Kinds(Protocol):
    """The requests in flight, by kind."""

    @property
    def kinds(self) -> dict[str, RequestKind]:
        """All kinds by name."""

    def oldest_wait_ms(self, now_ms: int) -> int:
        """Return for how long the first waiting send has waited."""


class Suspended(Protocol):
    """Pulls and pops that wait for messages."""

    @property
    def count(self) -> int:
        """How many there are."""


class RequestQueues:
    """Reports the queues of requests."""

    def __init__(
        self,
        *,
        in_flight: Kinds,
        suspended: Suspended,
        late_seconds: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        """`late_seconds` is how late the event loop was last: every request waits for that."""
        self._in_flight = in_flight
        self._suspended = suspended
        self._late_seconds = late_seconds
        self._now_ms = now_ms

    def table(self) -> dict[str, str]:
        """Return size, capacity and wait of each queue, as of now."""
        late_ms = int(self._late_seconds() * 1000)
        found: dict[str, str] = {}
        for queue, kind in _KINDS.items():
            wait_ms = late_ms
            if queue == "send":
                wait_ms = max(late_ms, self._in_flight.oldest_wait_ms(self._now_ms()))
            found[f"{queue}ThreadPoolQueueSize"] = str(self._size(kind))
            found[f"{queue}ThreadPoolQueueCapacity"] = self._capacity(kind)
            found[f"{queue}ThreadPoolQueueHeadWaitTimeMills"] = str(wait_ms)
        found["EndTransactionQueueSize"] = str(self._size("transaction"))
        found["EndTransactionThreadPoolQueueCapacity"] = self._capacity("transaction")
        return found

    def _size(self, kind: str) -> int:
        count = self._in_flight.kinds[kind].in_flight
        return max(0, count - self._suspended.count) if kind == "pull" else count

    def _capacity(self, kind: str) -> str:
        return str(min(_UNBOUNDED, self._in_flight.kinds[kind].in_flight_max))
