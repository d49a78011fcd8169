import logging
from collections.abc import Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.kafka.configs.group import GROUP_CONFIGS
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.types import ConfigKind
from rockgate.gateway.kafka.handlers.describe_configs import DescribeConfigs
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from rockgate.store.state.topicchanges import NewTopic

LATEST = 4
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
Resource = tuple[int, str, Sequence[str] | None]


class DescribingConfigs(Admin):
    def __init__(self, *pairs: str) -> None:
        super().__init__()
        config = gather(from_pairs(pairs)).config
        self.defaults = topic_defaults(config)
        self.handler = DescribeConfigs(
            catalog=self.catalog,
            defaults=self.defaults,
            node_id=NODE_ID,
            broker_configs=broker_configs(config, NODE_ID, self.defaults),
            configs=self.configs,
        )

    async def describe(
        self,
        *resources: Resource,
        version: int = LATEST,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> list[Any]:
        request = DescribeConfigsRequest(
            resources=[resource(each) for each in resources],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        response = await seen(self.handler.handle(request, call(version)), version)
        return list(response.results)

    async def configs_of(self, asked: Resource, **more: Any) -> dict[str, Any]:
        (result,) = await self.describe(asked, **more)
        assert (result.error_code, result.error_message) == (0, "")
        assert (result.resource_type, result.resource_name) == asked[:2]
        return {config.name: config for config in result.configs}


def resource(asked: Resource) -> DescribeConfigsResource:
    type_, name, keys = asked
    return DescribeConfigsResource(
        resource_type=type_,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )


def told(config: Any) -> list[tuple[str, str, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]


@pytest.mark.parametrize("version", range(1, LATEST + 1))
@pytest.mark.parametrize("keys", [None, ()])
async def test_a_topic_has_every_config(version: int, keys: Sequence[str] | None) -> None:
    world = DescribingConfigs()
    world.topic("a", retention_ms="5")
    found = await world.configs_of((TOPIC, "a", keys), version=version)
    assert list(found) == list(TOPIC_CONFIGS)
    for name, config in found.items():
        own = name == "retention.ms"
        assert config.value == ("5" if own else TOPIC_CONFIGS[name].default)
        assert config.config_source == (1 if own else 5)
        assert (config.read_only, config.is_sensitive, config.synonyms) == (False, False, [])
        assert config.config_type == (TOPIC_CONFIGS[name].type.kind if version >= 3 else 0)
        assert not config.documentation


async def test_only_the_keys_asked_for_are_described_and_unknown_ones_left_out() -> None:
    world = DescribingConfigs()
    world.topic("a", segment_ms="5")
    keys = ["segment.ms", "no.such", "flush.ms", "segment.ms"]
    assert list(await world.configs_of((TOPIC, "a", keys))) == ["segment.ms", "flush.ms"]
    assert list(await world.configs_of((TOPIC, "a", ["no.such"]))) == []


async def test_synonyms_lead_from_the_topic_to_the_default() -> None:
    world = DescribingConfigs("log.retention.ms=77")
    world.topic("a", retention_ms="5", segment_bytes="2000000", message_type="DELAY")
    world.topic("b")
    found = await world.configs_of((TOPIC, "a", None), synonyms=True)
    assert told(found["retention.ms"]) == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "77", 4),
        ("log.retention.ms", "604800000", 5),
    ]
    assert told(found["segment.bytes"]) == [
        ("segment.bytes", "2000000", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert told(found["max.message.bytes"]) == [("message.max.bytes", "1048588", 5)]
    assert told(found["message.type"]) == [("message.type", "DELAY", 1)]
    other = await world.configs_of((TOPIC, "b", ["retention.ms"]), synonyms=True)
    assert (other["retention.ms"].value, other["retention.ms"].config_source) == ("77", 4)
    assert told(other["retention.ms"]) == [
        ("log.retention.ms", "77", 4),
        ("log.retention.ms", "604800000", 5),
    ]


@pytest.mark.parametrize("version", [3, 4])
async def test_documentation_is_given_when_asked_for(version: int) -> None:
    world = DescribingConfigs()
    world.topic("a", cleanup_policy="compact")
    found = await world.configs_of((TOPIC, "a", None), version=version, documentation=True)
    for name, config in found.items():
        assert config.documentation == TOPIC_CONFIGS[name].documentation
    assert "retains the last record of each key" in found["cleanup.policy"].documentation
    assert "No effect" in found["segment.bytes"].documentation
    assert (await world.configs_of((TOPIC, "a", None)))["segment.ms"].documentation is None


async def test_what_was_altered_is_described_as_it_is_now() -> None:
    world = DescribingConfigs()
    topic = world.topic("a")
    assert (await world.configs_of((TOPIC, "a", None)))["retention.ms"].config_source == 5
    world.store.topics.set_config({topic: {"retention.ms": "9"}})
    found = (await world.configs_of((TOPIC, "a", None)))["retention.ms"]
    assert (found.value, found.config_source) == ("9", 1)


@pytest.mark.parametrize(
    ("type_", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER, str(NODE_ID + 1), ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, str(NODE_ID + 1), ErrorCode.INVALID_REQUEST),
        (16, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_not_there_is_an_error_of_its_own(
    type_: int, name: str, code: ErrorCode
) -> None:
    world = DescribingConfigs()
    world.topic("a")
    wrong, right = await world.describe((type_, name, None), (TOPIC, "a", None))
    assert (wrong.resource_type, wrong.resource_name) == (type_, name)
    assert (wrong.error_code, wrong.configs) == (code, [])
    assert wrong.error_message
    assert (right.error_code, len(right.configs)) == (0, len(TOPIC_CONFIGS))


async def test_a_resource_asked_for_twice_is_answered_once_with_all_keys() -> None:
    world = DescribingConfigs()
    world.topic("a")
    asked = [(TOPIC, "a", ["segment.ms"]), (TOPIC, "a", ["flush.ms", "segment.ms"])]
    (result,) = await world.describe(*asked)
    assert [config.name for config in result.configs] == ["segment.ms", "flush.ms"]
    (result,) = await world.describe(*asked, (TOPIC, "a", None), (TOPIC, "a", ["flush.ms"]))
    assert len(result.configs) == len(TOPIC_CONFIGS)


# The broker


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_the_broker_has_the_server_s_settings_and_they_are_read_only(version: int) -> None:
    world = DescribingConfigs("num.partitions=9")
    found = await world.configs_of((BROKER, str(NODE_ID), None), version=version, synonyms=True)
    assert len(found) > 90
    assert all(config.read_only for config in found.values())
    for name in ("num.partitions", "topics.partitions"):
        assert (found[name].value, found[name].config_source) == ("9", 4)
        assert told(found[name]) == [(name, "9", 4), (name, "4", 5)]
    assert (found["store.flush"].value, found["store.flush"].config_source) == ("async", 5)
    assert told(found["store.flush"]) == [("store.flush", "async", 5)]
    assert found["kafka.advertise"].value is None
    assert told(found["kafka.advertise"]) == []
    if version >= 3:
        assert found["topics.auto_create"].config_type == ConfigKind.BOOLEAN


async def test_keys_and_documentation_of_the_broker() -> None:
    world = DescribingConfigs()
    keys = ["auto.create.topics.enable", "no.such", "log.cleanup.policy"]
    found = await world.configs_of((BROKER, str(NODE_ID), keys), documentation=True)
    assert list(found) == ["auto.create.topics.enable", "log.cleanup.policy"]
    assert "topics.auto_create" in found["auto.create.topics.enable"].documentation
    assert "cleanup.policy" in found["log.cleanup.policy"].documentation


async def test_what_all_brokers_share_is_nothing() -> None:
    assert await DescribingConfigs().configs_of((BROKER, "", None)) == {}


# Many


async def test_ten_thousand_topics_are_described_in_slices() -> None:
    world = DescribingConfigs()
    names = [f"t{index}" for index in range(10_000)]
    world.store.topics.create_many([NewTopic(name=name, queue_count=1) for name in names])
    results = await world.describe(*((TOPIC, name, ["retention.ms"]) for name in names))
    assert [result.resource_name for result in results] == names
    assert all(len(result.configs) == 1 for result in results)


async def test_a_refusal_is_said_of_every_resource() -> None:
    world = DescribingConfigs()
    request = DescribeConfigsRequest(resources=[resource((TOPIC, "a", None))])
    refused = await seen(world.handler.refuse(request, ErrorCode.NOT_CONTROLLER), LATEST)
    assert [(each.resource_name, each.error_code) for each in refused.results] == [("a", 41)]


async def test_a_group_has_every_config_with_its_source_and_synonyms() -> None:
    world = DescribingConfigs()
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    world.configs.put(GROUP, {"g": {session: "46000"}})
    found = await world.configs_of((GROUP, "g", None), synonyms=True, documentation=True)
    assert list(found) == list(GROUP_CONFIGS)
    assert (found[session].value, found[session].config_source) == ("46000", 8)
    assert told(found[session]) == [(session, "46000", 8), (f"group.{session}", "45000", 5)]
    assert (found[heartbeat].value, found[heartbeat].config_source) == ("5000", 5)
    assert told(found[heartbeat]) == [(f"group.{heartbeat}", "5000", 5)]
    assert all(config.documentation and not config.read_only for config in found.values())
    assert list(await world.configs_of((GROUP, "other", [session, "x"]))) == [session]


async def test_loggers_have_their_levels() -> None:
    logging.getLogger("rockgate.gateway.kafka.server.session")
    world = DescribingConfigs()
    found = await world.configs_of((LOGGER, str(NODE_ID), None))
    assert {"root", "rockgate.gateway.kafka.server.session"} <= set(found)
    assert {config.config_source for config in found.values()} == {6}
    assert {config.value for config in found.values()} <= {"DEBUG", "INFO", "WARN", "ERROR"}
    assert list(await world.configs_of((LOGGER, str(NODE_ID), ["root", "x"]))) == ["root"]
