"""Clients are asked for what subscriptions say, and what they push is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin, answered, seen
from tests.gateway.kafka.world import call
from tests.protocol.otlp.building import metric, number_point, pushed

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.metrics.client_metrics import ClientMetricsSource
from rockgate.gateway.kafka.client_metrics.clients import PushingClients
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.client_metrics.subscriptions import MetricsSubscriptions, instance_text
from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.handlers import push_telemetry
from rockgate.gateway.kafka.handlers.get_telemetry_subscriptions import GetTelemetrySubscriptions
from rockgate.gateway.kafka.handlers.push_telemetry import PushTelemetry
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from rockgate.protocol.kafka.messages.push_telemetry import PushTelemetryRequest
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.compression import compress
from rockgate.protocol.kafka.schema import ZERO_UUID

CONFIG = ClientMetricsConfig(enabled=True, clients_max=3, series_max=5, push_bytes_max=2_000)
ID = b"0123456789abcdef"
TYPE = ResourceType.CLIENT_METRICS
INTERVAL_MS = 10_000


class Pushing:
    """Clients of a server with a subscription to everything."""

    def __init__(self, config: ClientMetricsConfig = CONFIG) -> None:
        self.world = Admin()
        self.put("all", metrics="*", **{"interval.ms": str(INTERVAL_MS)})
        self.now = 0.0
        self.threads = BatchThreads()
        self.clients = PushingClients(
            MetricsSubscriptions(self.world.configs), config, lambda: self.now
        )
        self._getting = GetTelemetrySubscriptions(
            self.clients, push_bytes_max=config.push_bytes_max
        )
        self._pushing = PushTelemetry(self.clients, self.threads, config)

    def put(self, name: str, **config: str) -> None:
        self.world.configs.put(TYPE, {name: config})

    async def get(
        self, id_: bytes = ID, client: Call | None = None
    ) -> GetTelemetrySubscriptionsResponse:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=id_)
        found = await seen(self._getting.handle(request, client or call(0)), 0)
        assert isinstance(found, GetTelemetrySubscriptionsResponse)
        return found

    async def push(self, data: bytes, subscription: int, id_: bytes = ID, **more: Any) -> ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=id_, subscription_id=subscription, metrics=data, **more
        )
        response = await answered(self._pushing.handle(request, call(0)))
        return ErrorCode(response.error_code)

    def page(self) -> list[str]:
        page = Exposition()
        for _ in ClientMetricsSource(self.clients)(page):
            pass
        return page.text().splitlines()

    def series(self) -> list[str]:
        return [line for line in self.page() if line.startswith("rockgate_client_metric{")]


@pytest.fixture
def pushing() -> Iterator[Pushing]:
    found = Pushing()
    yield found
    found.threads.close()


def points(*names: str, value: float = 1.0) -> bytes:
    return pushed(*(metric(name, number_point(value, node="1")) for name in names))


async def test_a_client_is_given_an_id_and_asked_for_what_matches_it(pushing: Pushing) -> None:
    asked = await pushing.get(ZERO_UUID)
    assert asked.error_code == 0
    assert asked.client_instance_id != ZERO_UUID
    assert asked.requested_metrics == ["*"]
    assert asked.push_interval_ms == INTERVAL_MS
    assert asked.telemetry_max_bytes == CONFIG.push_bytes_max
    assert asked.accepted_compression_types == [4, 3, 1, 2]
    assert not asked.delta_temporality


async def test_subscriptions_that_match_are_put_together(pushing: Pushing) -> None:
    pushing.put("all")
    pushing.put("a", metrics="b.,a.", match="client_id=ser.*", **{"interval.ms": "500"})
    pushing.put("b", metrics="a.,c.", match="client_id=service,client_source_port=\\d+")
    pushing.put("c", metrics="d.", match="client_id=other")
    pushing.put("d", metrics="e.", match="client_software_name=java,client_id=service")
    service = call(0)
    service.client_id = "service"
    asked = await pushing.get(client=service)
    assert asked.requested_metrics == ["a.", "b.", "c."]
    assert asked.push_interval_ms == 500
    pushing.now = 1
    again = await pushing.get(client=service)
    assert again.subscription_id == asked.subscription_id
    service.peer.software = "java"
    pushing.now = 2
    changed = await pushing.get(client=service)
    assert "e." in changed.requested_metrics
    assert changed.subscription_id != asked.subscription_id


async def test_without_a_subscription_nothing_is_asked_for(pushing: Pushing) -> None:
    pushing.put("all")
    asked = await pushing.get()
    assert (asked.requested_metrics, asked.push_interval_ms) == ([], 300_000)


@pytest.mark.parametrize("codec", Compression)
async def test_the_last_values_of_a_client_are_on_the_page(
    pushing: Pushing, codec: Compression
) -> None:
    subscription = (await pushing.get()).subscription_id
    for value in (1.0, 2.5):
        data = compress(points("producer.rate", value=value), codec)
        assert await pushing.push(data, subscription, compression_type=codec) is ErrorCode.NONE
        pushing.now += INTERVAL_MS / 1_000
    (line,) = pushing.series()
    instance = instance_text(ID)
    assert f'metric="producer.rate",client_id="me",instance="{instance}"' in line
    assert line.endswith('attributes="node=1"} 2.5')
    assert "rockgate_client_metrics_clients 1" in pushing.page()
    assert 'rockgate_client_metrics_pushes_total{error="NONE"} 2' in pushing.page()


async def test_a_client_that_is_silent_for_three_intervals_is_gone(pushing: Pushing) -> None:
    subscription = (await pushing.get()).subscription_id
    await pushing.push(points("a"), subscription)
    pushing.now = 60
    assert len(pushing.series()) == 1
    pushing.now = 60.1
    assert pushing.series() == []
    await pushing.get(b"another instance")
    assert len(pushing.clients) == 1
    assert pushing.clients.series_count == 0


async def test_clients_and_series_are_limited(pushing: Pushing) -> None:
    for number in range(5):
        id_ = bytes(15) + bytes((number + 1,))
        pushing.now += 0.1
        subscription = (await pushing.get(id_)).subscription_id
        assert await pushing.push(points("a", "b", "c"), subscription, id_) is ErrorCode.NONE
        assert pushing.clients.series_count <= CONFIG.series_max
    assert len(pushing.clients) == CONFIG.clients_max
    assert len(pushing.series()) == pushing.clients.series_count > 0
    assert pushing.clients.hidden_count > 0


async def test_only_metrics_that_were_asked_for_are_kept(pushing: Pushing) -> None:
    pushing.put("all", metrics="producer.")
    subscription = (await pushing.get()).subscription_id
    data = points("producer.rate", "consumer.rate") + points("producer.lag", value=float("nan"))
    assert await pushing.push(data, subscription) is ErrorCode.NONE
    assert [line.split('"')[1] for line in pushing.series()] == ["producer.rate"]


async def test_a_client_waits_for_its_interval(pushing: Pushing) -> None:
    subscription = (await pushing.get()).subscription_id
    throttled = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert (await pushing.get()).error_code == throttled
    pushing.now = 1
    assert await pushing.push(points("a"), subscription) is ErrorCode.NONE, "the first at once"
    assert await pushing.push(points("a"), subscription) is throttled
    pushing.now += INTERVAL_MS / 1_000
    assert await pushing.push(points("a"), subscription) is ErrorCode.NONE
    assert await pushing.push(points("b"), subscription, terminating=True) is ErrorCode.NONE
    late = await pushing.push(points("b"), subscription, terminating=True)
    assert late is ErrorCode.INVALID_REQUEST, "that was its last one"


async def test_a_changed_subscription_is_asked_for_again_at_once(pushing: Pushing) -> None:
    subscription = (await pushing.get()).subscription_id
    pushing.put("all", metrics="a.", **{"interval.ms": str(INTERVAL_MS)})
    code = await pushing.push(points("a"), subscription)
    assert code is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    pushing.now = 1
    again = await pushing.get()
    assert (again.error_code, again.requested_metrics) == (0, ["a."])
    assert await pushing.push(points("a.b"), again.subscription_id) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("data", "codec", "code"),
    [
        (b"\x0a\x05abc", 0, ErrorCode.INVALID_RECORD),
        (b"not gzip", 1, ErrorCode.INVALID_RECORD),
        (compress(bytes(1 << 20), Compression.ZSTD), 4, ErrorCode.INVALID_RECORD),
        (bytes(2_001), 0, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"", 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (b"", -1, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (b"", 0, ErrorCode.NONE),
    ],
)
async def test_a_push_that_cannot_be_read_is_refused(
    data: bytes, codec: int, code: ErrorCode
) -> None:
    pushing = Pushing(replace(CONFIG, inflated_bytes_max=100_000))
    subscription = (await pushing.get()).subscription_id
    assert await pushing.push(data, subscription, compression_type=codec) is code
    assert pushing.series() == []
    pushing.threads.close()


async def test_a_push_without_an_id_is_refused_and_one_that_never_asked_is_not(
    pushing: Pushing,
) -> None:
    subscription = (await pushing.get()).subscription_id
    assert await pushing.push(points("a"), subscription, ZERO_UUID) is ErrorCode.INVALID_REQUEST
    restarted = Pushing()
    assert await restarted.push(points("a"), subscription) is ErrorCode.NONE
    restarted.threads.close()


async def test_pushes_that_wait_are_limited(
    pushing: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = (await pushing.get()).subscription_id
    monkeypatch.setattr(push_telemetry, "WAITING_MAX", 0)
    code = await pushing.push(points("a"), subscription)
    assert code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
