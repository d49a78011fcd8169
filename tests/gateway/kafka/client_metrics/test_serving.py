"""Client metrics of a running server, pushed by librdkafka."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.gateway.kafka.client_metrics.subscribing import subscribe
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from rockgate.protocol.kafka.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TELEMETRY = {int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)}


def running(path: Path, *, enabled: str) -> RunningServer:
    return RunningServer(path, settings=[f"client_metrics.enabled={enabled}"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("pushing"), enabled="true") as found:
        yield found
        found.stop_cleanly()


def page(server: RunningServer) -> list[str]:
    host, port = server.address("http")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return [line for line in text.splitlines() if line.startswith("rockgate_client_metric{")]


def test_telemetry_is_not_advertised_unless_it_is_on(server: RunningServer, tmp_path: Path) -> None:
    with RawClient(server) as client:
        assert {each.api_key for each in client.api_versions().api_keys} >= TELEMETRY
    with running(tmp_path, enabled="false") as silent, RawClient(silent) as client:
        assert not TELEMETRY & {each.api_key for each in client.api_versions().api_keys}
        assert subscribe(client, "all", metrics="*")[0] == 0, "configs may be set before"
        silent.stop_cleanly()


def test_librdkafka_pushes_what_a_subscription_asks_for(server: RunningServer) -> None:
    with RawClient(server) as client:
        config = {"interval.ms": "200", "metrics": "org.apache.kafka.", "match": "client_id=pu.*"}
        assert subscribe(client, "pushers", **config)[0] == 0
    producers = [
        Producer({"bootstrap.servers": server.bootstrap, "client.id": name})
        for name in ("pusher", "other")
    ]
    for producer in producers:
        producer.produce("pushed", b"x")
        assert producer.flush(60) == 0
    wait_until(lambda: page(server), "librdkafka has pushed")
    for line in page(server):
        assert 'metric="org.apache.kafka.' in line
        assert 'client_id="pusher"' in line, "the other one does not match"


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "x"}, ErrorCode.INVALID_CONFIG),
        ({"nope": "1"}, ErrorCode.INVALID_REQUEST),
        ({"match": "client_id=["}, ErrorCode.INVALID_CONFIG),
        ({"match": "color=red"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG),
        ({"match": f"client_id={'a' * 257}"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_configs_that_kafka_refuses_are_refused_alike(
    server: RunningServer, config: dict[str, str], code: ErrorCode
) -> None:
    with RawClient(server) as client:
        assert subscribe(client, "refused", **config)[0] == code
        assert subscribe(client, "", metrics="*")[0] == ErrorCode.INVALID_REQUEST


def listed(client: RawClient) -> set[str]:
    response: Any = client.call(
        ApiKey.LIST_CONFIG_RESOURCES, 0, ListConfigResourcesRequest(), ListConfigResourcesResponse
    )
    return {each.resource_name for each in response.config_resources}


def test_subscriptions_are_listed_and_described(server: RunningServer) -> None:
    with RawClient(server) as client:
        subscribe(client, "described", metrics=" a., b. ", match="")
        described = DescribeConfigsResource(
            resource_type=16, resource_name="described", configuration_keys=None
        )
        response: Any = client.call(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest(resources=[described], include_synonyms=True),
            DescribeConfigsResponse,
        )
        assert [
            (each.name, each.value, each.config_source, each.config_type, len(each.synonyms))
            for each in response.results[0].configs
        ] == [
            ("interval.ms", "300000", 5, 3, 0),
            ("match", "", 7, 7, 1),
            ("metrics", "a.,b.", 7, 7, 1),
        ]
        assert "described" in listed(client)
        subscribe(client, "described", metrics=None, match=None)
        assert "described" not in listed(client)
        for number in range(60):
            code, _ = subscribe(client, f"s{number}", metrics="none.", match="client_id=no")
        assert code == ErrorCode.POLICY_VIOLATION
