"""Which clients are throttled, and for how long: their rates compared with the quotas set.

While no quota is set `is_on` is false, and nothing else here is called. Rates are tracked for
clients with a quota, and dropped after a client was silent for as long as a rate looks back.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.quotas.entities import (
    CONNECTIONS,
    CONSUMER_BYTES,
    MUTATIONS,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
)
from rockgate.gateway.kafka.quotas.rates import Bucket, Rate
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.clock import Clock
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

_CLIENTS_MAX: Final = 10_000
"""Clients whose quotas are cached; beyond that the cache is cleared."""
_WAIT_MS_MAX: Final = (1 << 31) - 1
"""The largest throttle time that a response can have."""
_MUTATION_WAIT_MS_MAX: Final = 600_000
"""A bucket may be overdrawn by more than its windows hold; no client waits longer than this."""
_SWEEP_MIN: Final = 1_000
_PRODUCE, _FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)

Limited = tuple[float, Rate] | None


class _Client:
    """The quotas that apply to one user with one client id."""

    __slots__ = ("consumed", "produced", "requests")

    def __init__(self, produced: Limited, consumed: Limited, requests: Limited) -> None:
        self.produced = produced
        self.consumed = consumed
        self.requests = requests


class Throttled:
    """How often, and for how long in total, clients were throttled by one quota."""

    __slots__ = ("count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0


class Throttling:
    """Measures clients. One for all connections of the listener."""

    def __init__(self, *, quotas: StoredQuotas, config: QuotasConfig, clock: Clock) -> None:
        self._quotas = quotas
        self._config = config
        self._clock = clock
        self._clients: dict[tuple[str, str], _Client] = {}
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._buckets: dict[tuple[str, str], tuple[float, Bucket]] = {}
        # After all windows without a byte nothing is left that a client could wait for.
        self._wait_ms_max = min(config.window_count * config.window_ms, _WAIT_MS_MAX)
        self._sweep_at = _SWEEP_MIN
        self.throttled = {
            quota: Throttled()
            for quota in (
                PRODUCER_BYTES,
                CONSUMER_BYTES,
                REQUEST_PERCENTAGE,
                MUTATIONS,
                CONNECTIONS,
            )
        }
        quotas.on_changed.append(self._changed)
        self.is_on = False
        """Whether any quota is set."""
        self._changed()

    # Requests

    def charge(
        self,
        api_key: int,
        client_id: str | None,
        peer: Peer,
        *,
        request_size: int,
        answer_size: int,
        loop_seconds: float,
    ) -> int:
        """Count a request that is about to be answered; how long its client has to wait."""
        now_ms = self._clock.time() * 1000
        client = self._client(peer.user, client_id or "")
        wait_ms = 0
        if api_key == _PRODUCE and client.produced is not None:
            wait_ms = self._count(PRODUCER_BYTES, client.produced, request_size, now_ms)
        elif api_key == _FETCH and client.consumed is not None:
            wait_ms = self._count(CONSUMER_BYTES, client.consumed, answer_size, now_ms)
        if client.requests is not None:
            most_ms = self._config.window_ms
            percent = loop_seconds * 100
            busy_ms = self._count(REQUEST_PERCENTAGE, client.requests, percent, now_ms, most_ms)
            wait_ms = max(wait_ms, busy_ms)
        return wait_ms

    def _count(
        self, quota: str, limited: tuple[float, Rate], value: float, now_ms: float, most_ms: int = 0
    ) -> int:
        limit, rate = limited
        rate.record(value, now_ms)
        wait_ms = min(rate.throttle_ms(limit, now_ms), most_ms or self._wait_ms_max)
        self._note(quota, wait_ms)
        return wait_ms

    def _note(self, quota: str, wait_ms: int) -> None:
        if wait_ms:
            throttled = self.throttled[quota]
            throttled.count += 1
            throttled.total_ms += wait_ms

    def fetch_bytes_max(self, call: Call, bytes_max: int) -> int:
        """The most that one Fetch may bring: what the quota allows in all windows but one."""
        consumed = self._client(call.peer.user, call.client_id or "").consumed
        if consumed is None:
            return bytes_max
        seconds = (self._config.window_count - 1) * self._config.window_ms / 1000
        return min(bytes_max, int(consumed[0] * seconds))

    # Partitions and connections

    def take_partitions(self, call: Call, count: int, *, is_strict: bool) -> None:
        """Count partitions that are to be created or deleted.

        THROTTLING_QUOTA_EXCEEDED if the quota is used up and the client knows that error; older
        clients are throttled instead.
        """
        if not self.is_on:
            return
        user, client_id = call.peer.user, call.client_id or ""
        found = self._quotas.limit(MUTATIONS, user, client_id)
        if found is None:
            return
        limit, sharer = found
        now_ms = self._clock.time() * 1000
        bucket = self._bucket(sharer, limit, now_ms)
        if is_strict and bucket.tokens < 0:
            self._hold(call.peer, bucket.throttle_ms(limit))
            raise RequestError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"Quota {MUTATIONS} of {limit:g} partitions per second is exceeded.",
            )
        bucket.tokens -= count
        if not is_strict:
            self._hold(call.peer, bucket.throttle_ms(limit))

    def _hold(self, peer: Peer, wait_ms: int) -> None:
        wait_ms = min(wait_ms, _MUTATION_WAIT_MS_MAX)
        self._note(MUTATIONS, wait_ms)
        peer.throttle_ms = max(peer.throttle_ms, wait_ms)

    def may_connect(self, address: str) -> bool:
        """Whether one more connection may come from an address; counts it if so."""
        if not self.is_on:
            return True
        limit = self._quotas.address_limit(CONNECTIONS, address)
        if limit is None:
            return True
        now_ms = self._clock.time() * 1000
        rate = self._rate(CONNECTIONS, (address, ""), now_ms)
        came, elapsed_ms = rate.measure(now_ms)
        if came + 1000 / elapsed_ms > limit:
            self.throttled[CONNECTIONS].count += 1
            return False
        rate.record(1, now_ms)
        return True

    # What is remembered

    def _changed(self) -> None:
        self.is_on = len(self._quotas) > 0
        self._clients.clear()
        self._buckets.clear()

    def _client(self, user: str, client_id: str) -> _Client:
        client = self._clients.get((user, client_id))
        if client is None:
            if len(self._clients) >= _CLIENTS_MAX:
                self._clients.clear()
            client = self._clients[user, client_id] = _Client(
                self._limited(PRODUCER_BYTES, user, client_id),
                self._limited(CONSUMER_BYTES, user, client_id),
                self._limited(REQUEST_PERCENTAGE, user, client_id),
            )
        return client

    def _limited(self, quota: str, user: str, client_id: str) -> Limited:
        found = self._quotas.limit(quota, user, client_id)
        if found is None:
            return None
        limit, sharer = found
        return limit, self._rate(quota, sharer, self._clock.time() * 1000)

    def _rate(self, quota: str, sharer: tuple[str, str], now_ms: float) -> Rate:
        key = (quota, *sharer)
        rate = self._rates.get(key)
        if rate is None:
            self._sweep(now_ms)
            rate = self._rates[key] = Rate(self._config.window_count, self._config.window_ms)
        return rate

    def _bucket(self, sharer: tuple[str, str], limit: float, now_ms: float) -> Bucket:
        known = self._buckets.get(sharer)
        if known is not None:
            known[1].refill(limit, now_ms)
            return known[1]
        self._sweep(now_ms)
        config = self._config
        bucket = Bucket(config.mutation_window_count, config.mutation_window_ms, limit, now_ms)
        self._buckets[sharer] = (limit, bucket)
        return bucket

    def _sweep(self, now_ms: float) -> None:
        """Forget idle clients once there are twice as many as the last sweep left."""
        if len(self._rates) + len(self._buckets) < self._sweep_at:
            return
        # Clients hold on to their rates, so they are looked up again.
        self._clients.clear()
        self._rates = {key: rate for key, rate in self._rates.items() if not rate.is_idle(now_ms)}
        self._buckets = {
            key: (limit, bucket)
            for key, (limit, bucket) in self._buckets.items()
            if not bucket.is_full(limit, now_ms)
        }
        self._sweep_at = max(_SWEEP_MIN, 2 * (len(self._rates) + len(self._buckets)))
