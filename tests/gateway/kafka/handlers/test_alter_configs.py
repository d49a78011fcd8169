import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, SYNC, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import gather
from rockgate.gateway.kafka.configs.resources import Alterable
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic

LATEST = 2
TOPIC, BROKER, GROUP = 2, 4, 32
Pairs = Sequence[tuple[str, str | None]]


class AlteringAll(Admin):
    def __init__(self, store: StoreConfig = CONFIG) -> None:
        super().__init__(store)
        self.topic("a", segment_ms="5")
        self.handler = AlterConfigs(alterable=alterable(self), durability=self.durability)

    async def alter(
        self, *resources: tuple[int, str, Pairs], version: int = LATEST, dry: bool = False
    ) -> list[tuple[str, int, str | None]]:
        request = AlterConfigsRequest(
            resources=[resource(*each) for each in resources], validate_only=dry
        )
        response = await seen(self.handler.handle(request, call(version)), version)
        return [
            (each.resource_name, each.error_code, each.error_message) for each in response.responses
        ]

    @property
    def current(self) -> Mapping[str, str]:
        return self.get("a").config


def alterable(admin: Admin) -> Alterable:
    config = gather(()).config
    return admin.alterable(broker_configs=broker_configs(config, NODE_ID, topic_defaults(config)))


def resource(type_: int, name: str, pairs: Pairs) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in pairs],
    )


@pytest.mark.parametrize("version", range(LATEST + 1))
async def test_a_topic_s_configs_become_those_that_are_given(version: int) -> None:
    world = AlteringAll()
    pairs = [("retention.ms", " 9 "), ("cleanup.policy", "compact, delete")]
    assert await world.alter((TOPIC, "a", pairs), version=version) == [("a", 0, None)]
    assert world.current == {"retention.ms": "9", "cleanup.policy": "compact,delete"}
    assert await world.alter((TOPIC, "a", []), version=version) == [("a", 0, None)]
    assert world.current == {}


async def test_what_other_protocols_keep_with_a_topic_stays() -> None:
    world = AlteringAll()
    world.store.topics.set_config({world.get("a"): {"order": "true", "segment.ms": "7"}})
    await world.alter((TOPIC, "a", [("retention.ms", "9")]))
    assert world.current == {"order": "true", "retention.ms": "9"}


@pytest.mark.parametrize(
    ("asked", "code", "reason"),
    [
        ((TOPIC, "a", [("segment.ms", "x")]), ErrorCode.INVALID_CONFIG, "must be an integer"),
        ((TOPIC, "a", [("segments.ms", "1")]), ErrorCode.INVALID_CONFIG, "mean 'segment.ms'"),
        ((TOPIC, "a", [("segment.ms", None)]), ErrorCode.INVALID_REQUEST, "requires a value"),
        (
            (TOPIC, "a", [("segment.ms", "6"), ("segment.ms", "7")]),
            ErrorCode.INVALID_REQUEST,
            "more than once",
        ),
        (
            (TOPIC, "a", [("min.compaction.lag.ms", "6"), ("max.compaction.lag.ms", "5")]),
            ErrorCode.INVALID_CONFIG,
            "must not exceed",
        ),
        ((TOPIC, "none", []), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist."),
        ((TOPIC, "", []), ErrorCode.INVALID_REQUEST, "requires a name"),
        ((TOPIC, "own", []), ErrorCode.TOPIC_AUTHORIZATION_FAILED, "internal topic"),
        (
            (BROKER, str(NODE_ID), [("num.partitions", "9")]),
            ErrorCode.INVALID_REQUEST,
            "Set 'topics.partitions' in the configuration",
        ),
        (
            (BROKER, "", [("log.segment.bytes", "9")]),
            ErrorCode.INVALID_REQUEST,
            "Broker configs cannot be changed at run time.",
        ),
        (
            (BROKER, "99", []),
            ErrorCode.INVALID_REQUEST,
            "Broker '99' does not exist; this broker is 7.",
        ),
        ((GROUP, "", []), ErrorCode.INVALID_REQUEST, "requires a name"),
        ((GROUP, "g", [("segment.ms", "1")]), ErrorCode.INVALID_CONFIG, "Unknown group config"),
        ((16, "", []), ErrorCode.INVALID_REQUEST, "A client metrics resource requires a name."),
        ((77, "g", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 77."),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
async def test_what_cannot_be_is_refused_and_changes_nothing(
    asked: tuple[int, str, Pairs], code: ErrorCode, reason: str, dry: bool
) -> None:
    world = AlteringAll()
    world.store.topics.create(NewTopic(name="own", queue_count=1, is_internal=True))
    world.topic("b")
    wrong, right = await world.alter(asked, (TOPIC, "b", [("flush.ms", "1")]), dry=dry)
    assert wrong[:2] == (asked[1], code)
    assert reason in (wrong[2] or "")
    assert right == ("b", 0, None)
    assert world.current == {"segment.ms": "5"}
    assert world.get("b").config == ({} if dry else {"flush.ms": "1"})


async def test_a_resource_that_is_named_twice_stays_as_it_is() -> None:
    world = AlteringAll()
    ((name, code, _),) = await world.alter((TOPIC, "a", []), (TOPIC, "a", [("flush.ms", "1")]))
    assert (name, code) == ("a", ErrorCode.INVALID_REQUEST)
    assert world.current == {"segment.ms": "5"}


async def test_only_to_validate_changes_nothing() -> None:
    world = AlteringAll()
    assert await world.alter((TOPIC, "a", [("flush.ms", "1")]), dry=True) == [("a", 0, None)]
    assert world.current == {"segment.ms": "5"}


async def test_producers_feel_a_change_at_once() -> None:
    world = AlteringAll()
    settings = SettingsCache(TopicDefaults())
    assert settings.of(world.get("a")).message_bytes_max == 1_048_588
    pairs = [("max.message.bytes", "77"), ("flush.messages", "1")]
    await world.alter((TOPIC, "a", pairs))
    assert settings.of(world.get("a")).message_bytes_max == 77
    assert world.queue("a").is_sync


async def test_a_change_is_there_after_a_restart() -> None:
    world = AlteringAll()
    await world.alter((TOPIC, "a", [("retention.ms", "9")]))
    world.reopen()
    assert world.current == {"retention.ms": "9"}


@pytest.mark.usefixtures("unhurried")
async def test_under_sync_a_change_is_reported_once_it_is_on_disk() -> None:
    world = AlteringAll(SYNC)
    world.store.flush()
    request = AlterConfigsRequest(resources=[resource(TOPIC, "a", [("flush.ms", "1")])])
    response = world.handler.handle(request, call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert (await response).responses[0].error_code == 0


async def test_many_topics_are_altered_in_slices() -> None:
    world = AlteringAll()
    names = [f"t{index}" for index in range(3000)]
    world.store.topics.create_many([NewTopic(name=name, queue_count=1) for name in names])
    found = await world.alter(*((TOPIC, name, [("flush.ms", "1")]) for name in names))
    assert found == [(name, 0, None) for name in names]
    assert all(world.get(name).config == {"flush.ms": "1"} for name in names)


async def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AlteringAll()

    def full(configs: Mapping[Topic, Mapping[str, str]]) -> None:
        raise StoreFull("no space left on device")

    monkeypatch.setattr(world.store.topics, "set_config", full)
    assert await world.alter((TOPIC, "a", []), (TOPIC, "x", [])) == [
        ("a", ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device"),
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist."),
    ]


async def test_a_refusal_is_said_of_every_resource() -> None:
    world = AlteringAll()
    request = AlterConfigsRequest(resources=[resource(TOPIC, "a", [])])
    refused: Any = await seen(world.handler.refuse(request, ErrorCode.NOT_CONTROLLER), LATEST)
    assert [(each.resource_name, each.error_code) for each in refused.responses] == [("a", 41)]


async def test_a_group_s_configs_become_those_that_are_given() -> None:
    world = AlteringAll()
    pairs = [("consumer.session.timeout.ms", "46000"), ("share.isolation.level", "read_committed")]
    assert await world.alter((GROUP, "g", pairs)) == [("g", 0, None)]
    assert world.configs.of(GROUP, "g") == dict(pairs)
    assert await world.alter((GROUP, "g", pairs[:1])) == [("g", 0, None)]
    assert world.configs.of(GROUP, "g") == dict(pairs[:1])
    assert await world.alter((GROUP, "g", [])) == [("g", 0, None)]
    assert list(world.configs.names(GROUP)) == []
