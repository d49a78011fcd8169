"""PushingClients that push metrics, by instance id: when they were heard, and their last values.

The last push of a client replaces what it pushed before. A client that was not heard for some
intervals is forgotten, and so is the one not heard for longest when there are too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias
from uuid import uuid4

from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.client_metrics.subscriptions import (
    MetricsSubscription,
    MetricsSubscriptions,
    instance_text,
    traits_of,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import ZERO_UUID
from rockgate.protocol.otlp.metrics import Attributes, Point

INTERVALS_RETAINED: Final = 3
RETAINED_SECONDS_MIN: Final = 60.0
_NEVER: Final = float("-inf")
CLIENT_ID_SIZE_MAX: Final = 256

Series: TypeAlias = dict[tuple[str, Attributes], float]


class PushingClient:
    """One client instance."""

    __slots__ = (
        "client_id",
        "got_at",
        "has_ended",
        "heard_at",
        "instance",
        "must_ask",
        "pushed_at",
        "series",
        "subscription",
    )

    def __init__(self, instance: str, client_id: str, subscription: MetricsSubscription) -> None:
        self.instance = instance
        self.client_id = client_id
        self.subscription = subscription
        self.got_at = _NEVER
        self.pushed_at = _NEVER
        self.heard_at = _NEVER
        self.must_ask = False
        """Whether its last push was for an outdated subscription: it may ask at once."""
        self.has_ended = False
        """Whether it has pushed for the last time."""
        self.series: Series = {}

    def is_forgotten(self, now: float) -> bool:
        """Whether it is taken to be gone."""
        intervals_s = INTERVALS_RETAINED * self.subscription.interval_ms / 1_000
        return now - self.heard_at > max(RETAINED_SECONDS_MIN, intervals_s)


class PushingClients:
    """All clients that have asked for a subscription."""

    def __init__(
        self,
        subscriptions: MetricsSubscriptions,
        config: ClientMetricsConfig,
        now: Callable[[], float],
    ) -> None:
        self._subscriptions = subscriptions
        self._config = config
        self._now = now
        # In the order in which they were heard.
        self._clients: dict[bytes, PushingClient] = {}
        self.series_count = 0
        self.hidden_count = 0
        """Series that the limit left out, since the start."""
        self.pushes: Counter[str] = Counter()
        """Pushes since the start, by outcome."""

    def __len__(self) -> int:
        return len(self._clients)

    def subscribe(self, instance_id: bytes, call: Call) -> tuple[bytes, MetricsSubscription]:
        """The id of a client and its subscription; one without an id is given one."""
        if instance_id == ZERO_UUID:
            instance_id = uuid4().bytes
        client, now = self._client(instance_id, call), self._now()
        heard_at = max(client.got_at, client.pushed_at)
        if now - heard_at < client.subscription.interval_ms / 1_000 and not client.must_ask:
            raise RequestError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Asked again too early.")
        client.got_at, client.must_ask = now, False
        return instance_id, client.subscription

    def admit(
        self, instance_id: bytes, subscription_id: int, call: Call, *, ends: bool
    ) -> PushingClient:
        """The client of a push, if it may push now; the next one has to wait for its interval."""
        if instance_id == ZERO_UUID:
            raise RequestError(ErrorCode.INVALID_REQUEST, "A push requires a client instance id.")
        client, now = self._client(instance_id, call), self._now()
        if client.has_ended:
            raise RequestError(ErrorCode.INVALID_REQUEST, "The client has pushed its last metrics.")
        is_due = client.got_at > client.pushed_at or (
            now - client.pushed_at >= client.subscription.interval_ms / 1_000
        )
        if not is_due and not ends:
            raise RequestError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Pushed again too early.")
        client.pushed_at = now
        if subscription_id != client.subscription.id:
            client.must_ask = True
            raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "The subscription is outdated.")
        client.has_ended = ends
        return client

    def keep(self, client: PushingClient, points: Iterable[Point]) -> None:
        """Replace what a client has pushed."""
        self.series_count -= len(client.series)
        client.series = {}
        room = self._config.series_max - self.series_count
        for point in points:
            key = (point.name, point.attributes)
            if not client.subscription.has(point.name) or point.value != point.value:
                continue
            if key not in client.series and len(client.series) >= room:
                self.hidden_count += 1
                continue
            client.series[key] = point.value
        if client.heard_at == _NEVER:
            # It was forgotten while its push was decoded.
            client.series = {}
        self.series_count += len(client.series)

    def walk(self) -> Iterator[PushingClient]:
        """All clients, without those that are gone; the walk may pause while clients come."""
        now = self._now()
        return (each for each in list(self._clients.values()) if not each.is_forgotten(now))

    def _client(self, instance_id: bytes, call: Call) -> PushingClient:
        """A client as of now, the last one that was heard."""
        subscription = self._subscriptions.of(instance_id, traits_of(instance_id, call))
        client = self._clients.pop(instance_id, None)
        if client is None:
            self._forget()
            client_id = (call.client_id or "")[:CLIENT_ID_SIZE_MAX]
            client = PushingClient(instance_text(instance_id), client_id, subscription)
        client.subscription = subscription
        client.heard_at = self._now()
        self._clients[instance_id] = client
        if len(self._clients) > self._config.clients_max:
            self._drop(next(iter(self._clients)))
        return client

    def _forget(self) -> None:
        """Drop clients that are gone, which are the first ones."""
        now = self._now()
        for instance_id, client in list(self._clients.items()):
            if not client.is_forgotten(now):
                break
            self._drop(instance_id)

    def _drop(self, instance_id: bytes) -> None:
        client = self._clients.pop(instance_id)
        self.series_count -= len(client.series)
        client.series, client.heard_at = {}, _NEVER
