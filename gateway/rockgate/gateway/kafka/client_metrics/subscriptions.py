"""The subscription of a client: all client metrics resources that match it, put together."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rockgate.gateway.kafka.configs.client_metrics import (
    ALL,
    INTERVAL,
    INTERVAL_MS,
    MATCH,
    METRICS,
    compiled_match,
)
from rockgate.gateway.kafka.configs.resources import ResourceType, SavedConfigs
from rockgate.gateway.kafka.configs.types import items_of
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call

TRAIT_SIZE_MAX: Final = 1_000
"""Characters of a trait that patterns are compared with."""
_SIGNED: Final = 1 << 31


class MetricsSubscription(NamedTuple):
    """What a client is asked to push."""

    id: int
    metrics: tuple[str, ...]
    """Prefixes of names, in order; `*` alone means all."""
    interval_ms: int

    def has(self, name: str) -> bool:
        """Whether a metric is asked for."""
        return self.metrics == (ALL,) or name.startswith(self.metrics)


class _Resource(NamedTuple):
    """One resource, parsed."""

    config: Mapping[str, str]
    match: Mapping[str, Any]
    metrics: tuple[str, ...]
    interval_ms: int

    def matches(self, traits: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(traits[name]) for name, pattern in self.match.items())


class MetricsSubscriptions:
    """Finds subscriptions; a resource is parsed again after it has changed."""

    def __init__(self, configs: SavedConfigs) -> None:
        self._configs = configs
        self._resources: dict[str, _Resource] = {}

    def of(self, instance_id: bytes, traits: Mapping[str, str]) -> MetricsSubscription:
        """The subscription of a client."""
        metrics: set[str] = set()
        interval_ms = INTERVAL_MS
        for resource in self._parsed().values():
            if resource.matches(traits):
                metrics.update(resource.metrics)
                interval_ms = min(interval_ms, resource.interval_ms)
        asked = (ALL,) if ALL in metrics else tuple(sorted(metrics))
        return MetricsSubscription(identify(asked, interval_ms, instance_id), asked, interval_ms)

    def _parsed(self) -> dict[str, _Resource]:
        configs, type_ = self._configs, ResourceType.CLIENT_METRICS
        found: dict[str, _Resource] = {}
        for name in configs.names(type_):
            config, known = configs.of(type_, name), self._resources.get(name)
            # A changed resource has another mapping.
            if known is None or known.config is not config:
                known = _parse(config)
            found[name] = known
        self._resources = found
        return found


def _parse(config: Mapping[str, str]) -> _Resource:
    metrics = tuple(items_of(config.get(METRICS, "")))
    try:
        match = compiled_match(config.get(MATCH, ""))
    except RequestError:
        # A pattern of another version: it matches no client.
        match, metrics = {}, ()
    return _Resource(config, match, metrics, int(config.get(INTERVAL, INTERVAL_MS)))


def identify(metrics: tuple[str, ...], interval_ms: int, instance_id: bytes) -> int:
    """A number that differs with the subscription and the client."""
    text = f"{','.join(metrics)} {interval_ms}".encode("utf-8", "surrogatepass")
    return (zlib.crc32(instance_id, zlib.crc32(text)) ^ _SIGNED) - _SIGNED


def traits_of(instance_id: bytes, call: Call) -> dict[str, str]:
    """What a client is matched by."""
    peer = call.peer
    found = {
        "client_instance_id": instance_text(instance_id),
        "client_id": call.client_id or "",
        "client_software_name": peer.software,
        "client_software_version": peer.software_version,
        "client_source_address": peer.remote.host,
        "client_source_port": str(peer.remote.port),
    }
    return {name: value[:TRAIT_SIZE_MAX] for name, value in found.items()}


def instance_text(instance_id: bytes) -> str:
    """An instance id as Kafka writes it."""
    return urlsafe_b64encode(instance_id).rstrip(b"=").decode()
