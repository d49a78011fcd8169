"""Failed attempts by address: each costs a delay, and many within a minute cost every attempt one.

The delay is counted from the client's message, not from the decision, so that it hides what the
decision took. It is the same for whatever failed. An address with many failures waits longer, and
for its successes too: otherwise a guesser would leave as soon as there is no success in time.

The table is bounded; an address that falls out of it has its count begin again.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from rockgate.gateway.runtime.bounded_cache import BoundedCache

MANY_COUNT: Final = 30
"""Failures within a window after which every attempt of an address is delayed."""
WINDOW_SECONDS: Final = 60.0
LONGER: Final = 10
"""How many times the usual delay that is."""
ADDRESSES_MAX: Final = 10_000
_NETWORK_BITS: Final = 64


class FailedAttempts:
    """Counts failures. One for all connections of the server."""

    def __init__(self, delay_ms: int) -> None:
        """`delay_ms` is the delay of the response to a failure."""
        self._seconds = delay_ms / 1000
        # When the window began, and the failures in it.
        self._counts: BoundedCache[str, tuple[float, int]] = BoundedCache(ADDRESSES_MAX)

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, host: str, now: float) -> None:
        """An attempt has failed."""
        host = _network(host)
        began, count = self._counts.get(host) or (now, 0)
        if now - began >= WINDOW_SECONDS:
            began, count = now, 0
        self._counts.put(host, (began, count + 1), 1)

    def delay_seconds(self, host: str, now: float, *, has_failed: bool) -> float:
        """How long after the client's message the response is sent, at the earliest."""
        began, count = self._counts.get(_network(host)) or (now, 0)
        if count > MANY_COUNT and now - began < WINDOW_SECONDS:
            return LONGER * self._seconds
        return self._seconds if has_failed else 0.0


def _network(host: str) -> str:
    """The address, or the network of one that may choose among many of its own."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _NETWORK_BITS):x}"
