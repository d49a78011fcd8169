"""Broker configs that change while the server runs: what Kafka 4.3.1 answers, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import SETTINGS, gather
from rockgate.gateway.compose.config.changeable import changeable_settings
from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.kafka.following import follow_defaults, follow_store
from rockgate.gateway.kafka.configs.dynamic import BrokerResources
from rockgate.gateway.kafka.configs.resources import ResourceType, TopicResources
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.handlers.describe_configs import DescribeConfigs
from rockgate.gateway.kafka.handlers.incremental_alter_configs import IncrementalAlterConfigs
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.remoting.admin.broker_settings import BrokerSettings
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import alter_configs as full
from rockgate.protocol.kafka.messages import describe_configs as describing
from rockgate.protocol.kafka.messages import incremental_alter_configs as single
from rockgate.store.errors import StoreFull
from rockgate.store.upkeep.expiry import limits_of

SIZE, RETENTION = "message.max.bytes", "log.retention.ms"
ONE, ALL = str(NODE_ID), ""
SET, DELETE, APPEND = 0, 1, 2
OK = (0, None)
CONFIG = gather().config
Change = tuple[str, int, str | None]


class Broker(Admin):
    """A world whose settings can be changed."""

    def open(self) -> None:
        super().open()
        self.changed = self.folds.changed
        self.defaults = topic_defaults(CONFIG)
        follow_defaults(self.changed, self.defaults)
        follow_store(self.changed, CONFIG.store, self.store)
        self.known = broker_configs(CONFIG, NODE_ID, self.defaults)
        found = self.alterable(
            resources={
                ResourceType.TOPIC: TopicResources(catalog=self.catalog, defaults=self.defaults),
                ResourceType.BROKER: BrokerResources(self.known, self.changed),
            }
        )
        self.changes = IncrementalAlterConfigs(alterable=found, durability=self.durability)
        self.replaces = AlterConfigs(alterable=found, durability=self.durability)
        self.describes = DescribeConfigs(
            catalog=self.catalog,
            defaults=self.defaults,
            node_id=NODE_ID,
            broker_configs=self.known,
            configs=self.configs,
            changeable=self.changed,
        )

    async def change(self, name: str, *changes: Change, dry: bool = False) -> tuple[int, Any]:
        configs = [
            single.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ]
        resource = single.AlterConfigsResource(
            resource_type=ResourceType.BROKER, resource_name=name, configs=configs
        )
        request = single.IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
        [result] = (await seen(self.changes.handle(request, call(1)), 1)).responses
        return result.error_code, result.error_message

    async def replace(self, name: str, *configs: tuple[str, str | None]) -> tuple[int, Any]:
        resource = full.AlterConfigsResource(
            resource_type=ResourceType.BROKER,
            resource_name=name,
            configs=[full.AlterableConfig(name=key, value=value) for key, value in configs],
        )
        request = full.AlterConfigsRequest(resources=[resource])
        [result] = (await seen(self.replaces.handle(request, call(2)), 2)).responses
        return result.error_code, result.error_message

    async def describe(
        self, name: str, *keys: str, type_: int = ResourceType.BROKER
    ) -> dict[str, tuple[Any, ...]]:
        """Value, source, whether it is read-only and the synonyms' values and sources."""
        resource = describing.DescribeConfigsResource(
            resource_type=type_, resource_name=name, configuration_keys=list(keys) or None
        )
        request = describing.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        [result] = (await seen(self.describes.handle(request, call(4)), 4)).results
        assert result.error_code == 0, result.error_message
        return {
            each.name: (
                each.value,
                each.config_source,
                each.read_only,
                [(synonym.value, synonym.source) for synonym in each.synonyms],
            )
            for each in result.configs
        }


def cannot(name: str) -> str:
    return f"Cannot update these configs dynamically: [{name}]."


@pytest.mark.row("CFG-2")
@pytest.mark.parametrize("level", [ONE, ALL])
@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ([(SIZE, SET, "soon")], 42, f"Invalid value for configuration {SIZE}: it must be an int"),
        ([(SIZE, SET, "-1")], 42, "must be at least 0, not -1"),
        ([(SIZE, SET, "9" * 19)], 42, "must be at most 2147483647"),
        ([(SIZE, SET, None)], 42, "requires a value"),
        ([(SIZE, APPEND, "1")], 40, "is not a list"),
        ([(SIZE, 9, "1")], 42, "Unknown operation 9"),
        ([(SIZE, SET, "1"), (SIZE, SET, "2")], 42, "more than once"),
        ([("num.partitions", SET, "3")], 42, cannot("num.partitions")),
        ([("num.partitions", SET, "3")], 42, "Set 'topics.partitions' in the configuration"),
        ([("auto.create.topics.enable", SET, "false")], 42, cannot("auto.create.topics.enable")),
        ([("node.id", SET, "3")], 42, cannot("node.id")),
        ([("log.segment.bytes", SET, "3")], 42, cannot("log.segment.bytes")),
        ([("store.flush", SET, "sync")], 42, cannot("store.flush")),
        ([("security.super_users", SET, "User:eve")], 42, cannot("security.super_users")),
        ([(SIZE, SET, "7"), ("num.partitions", SET, "5")], 42, cannot("num.partitions")),
        ([("nosuch", SET, "1")], 42, "Unknown broker config 'nosuch'"),
        ([("log.retention.hours", SET, "1")], 42, "log.retention.hours"),
        ([("log.message.timestamp.type", SET, "Never")], 42, "must be one of CreateTime"),
        ([("remoting.name_servers", SET, "here")], 42, "must be HOST:PORT"),
    ],
)
async def test_what_cannot_be_changed_is_refused_by_name_and_changes_nothing(
    level: str, changes: Sequence[Change], code: int, text: str
) -> None:
    world = Broker()
    end = world.store.log.end
    assert (found := await world.change(level, *changes))[0] == code
    assert text in found[1]
    assert world.store.log.end == end
    assert await world.describe(ALL) == {}


@pytest.mark.parametrize("name", ["9", "abc"])
async def test_another_broker_is_refused(name: str) -> None:
    world = Broker()
    assert (await world.change(name, (SIZE, SET, "9")))[0] == ErrorCode.INVALID_REQUEST
    assert (await world.replace(name, (SIZE, "9")))[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.row("CFG-1")
async def test_the_change_for_one_broker_is_stronger_than_that_for_all() -> None:
    world = Broker()
    default = ("1048588", 5)
    assert (await world.describe(ONE, SIZE))[SIZE] == ("1048588", 5, False, [default])
    assert await world.change(ALL, (SIZE, SET, "2000000")) == OK
    assert (await world.describe(ALL, SIZE))[SIZE] == ("2000000", 3, False, [("2000000", 3)])
    [found] = (await world.describe(ONE, SIZE)).values()
    assert found == ("2000000", 3, False, [("2000000", 3), default])
    assert await world.change(ONE, (SIZE, SET, "3000000")) == OK
    [found] = (await world.describe(ONE, SIZE)).values()
    assert found == ("3000000", 2, False, [("3000000", 2), ("2000000", 3), default])
    assert (await world.describe(ALL, SIZE))[SIZE][0] == "2000000"
    assert await world.change(ONE, (SIZE, DELETE, None)) == OK
    assert (await world.describe(ONE, SIZE))[SIZE][:2] == ("2000000", 3)
    assert await world.change(ALL, (SIZE, DELETE, "x")) == OK
    assert (await world.describe(ONE, SIZE))[SIZE] == ("1048588", 5, False, [default])


async def test_both_names_of_a_setting_are_the_same_config() -> None:
    world = Broker()
    assert await world.change(ONE, ("topics.message_bytes_max", SET, "7000")) == OK
    found = await world.describe(ONE, SIZE, "topics.message_bytes_max")
    assert {name: each[0] for name, each in found.items()} == {
        SIZE: "7000",
        "topics.message_bytes_max": "7000",
    }
    assert await world.change(ONE, (SIZE, DELETE, None)) == OK
    assert (await world.describe(ONE, SIZE))[SIZE][1] == 5


async def test_alter_configs_replaces_all_that_was_set_at_its_level() -> None:
    world = Broker()
    await world.change(ALL, (SIZE, SET, "2000000"))
    await world.change(ONE, (SIZE, SET, "3000000"), (RETENTION, SET, "600000"))
    assert await world.replace(ONE, ("compression.type", "zstd")) == OK
    found = await world.describe(ONE, SIZE, RETENTION, "compression.type")
    assert [each[:2] for each in found.values()] == [("2000000", 3), ("604800000", 5), ("zstd", 2)]
    assert (await world.replace(ONE, (SIZE, None)))[0] == ErrorCode.INVALID_REQUEST
    assert (await world.replace(ONE, ("num.partitions", "3")))[1].startswith(
        cannot("num.partitions")
    )
    assert await world.replace(ONE) == OK
    assert (await world.describe(ONE, "compression.type"))["compression.type"][1] == 5
    assert await world.replace(ALL) == OK
    assert await world.describe(ALL) == {}


async def test_what_is_only_validated_is_not_changed() -> None:
    world = Broker()
    assert await world.change(ONE, (SIZE, SET, "9"), dry=True) == OK
    assert (await world.describe(ONE, SIZE))[SIZE][1] == 5


async def test_what_cannot_change_is_read_only_and_what_can_is_not() -> None:
    found = await Broker().describe(ONE)
    can = {name for name, each in found.items() if not each[2]}
    settings = set(changeable_settings())
    aliases = {
        name
        for name, alias in KAFKA_NAMES.items()
        if alias.setting in settings and alias.scale == 1
    }
    assert can == settings | aliases
    # All of these can be changed in Kafka 4.3.1, too.
    assert aliases == {
        "compression.type",
        "group.consumer.assignment.interval.ms",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.retention.bytes",
        "log.retention.ms",
        "max.connections.per.ip",
        "message.max.bytes",
        "producer.id.expiration.ms",
    }


@pytest.mark.row("CFG-1")
@pytest.mark.parametrize("is_killed", [False, True])
async def test_changes_outlast_a_restart(*, is_killed: bool) -> None:
    world = Broker()
    await world.change(ALL, (SIZE, SET, "2000000"), (RETENTION, SET, "600000"))
    await world.change(ONE, (SIZE, SET, "3000000"))
    world.kill() if is_killed else world.reopen()
    found = await world.describe(ONE, SIZE, RETENTION)
    assert [each[:2] for each in found.values()] == [("3000000", 2), ("600000", 3)]
    world.topic("orders")
    assert limits_of(world.get("orders"), CONFIG.store).age_ms == 7 * 86_400_000
    assert world.defaults["retention.ms"] == "600000"


async def test_topics_without_an_own_config_follow_at_once() -> None:
    world = Broker()
    cache = SettingsCache(world.defaults)
    world.topic("orders", 1)
    world.topic("own", 1, max_message_bytes="5")
    assert cache.of(world.get("orders")).message_bytes_max == 1_048_588
    await world.change(ALL, (SIZE, SET, "2000"))
    assert cache.of(world.get("orders")).message_bytes_max == 2_000
    assert cache.of(world.get("own")).message_bytes_max == 5
    name = "max.message.bytes"
    described = await world.describe("orders", name, type_=ResourceType.TOPIC)
    assert described[name] == ("2000", 3, False, [("2000", 3), ("1048588", 5)])
    await world.change(ALL, (SIZE, DELETE, None))
    assert cache.of(world.get("orders")).message_bytes_max == 1_048_588
    described = await world.describe("orders", name, type_=ResourceType.TOPIC)
    assert described[name][:2] == ("1048588", 5)


async def test_retention_follows_at_once() -> None:
    world = Broker()
    world.topic("orders", 1)
    world.message("orders", body=b"old")
    world.pass_time(60_000)
    assert world.queue("orders").log_start == 0
    await world.change(ONE, (RETENTION, SET, "1000"))
    world.pass_time(CONFIG.store.retention_interval_ms + 1_000)
    world.pass_time(CONFIG.store.retention_interval_ms + 1_000)
    assert world.queue("orders").log_start == 1


@pytest.mark.row("CFG-3")
async def test_both_wires_change_the_same_settings() -> None:
    world = Broker()
    settings = BrokerSettings(
        configured=CONFIG.remoting, overload=CONFIG.overload, changed=world.changed, facts={}
    )
    applied: list[int] = []
    settings.on_changed.append(lambda config: applied.append(config.message_bytes_max))
    name = "remoting.message_bytes_max"
    settings.change(b"maxMessageSize=1000")
    assert (await world.describe(ONE, name))[name][:3] == ("1000", 2, False)
    assert await world.change(ONE, (name, SET, "2000")) == OK
    assert settings.current()["maxMessageSize"] == "2000"
    assert await world.change(ONE, (name, DELETE, None)) == OK
    assert await world.change(ALL, (name, SET, "3000")) == OK
    assert settings.current()["maxMessageSize"] == "3000"
    # Set back by RocketMQ's tools, it is what is configured, whatever is set for all brokers.
    configured = CONFIG.remoting.message_bytes_max
    settings.change(b"maxMessageSize=%d" % configured)
    assert settings.current()["maxMessageSize"] == str(configured)
    assert applied == [1000, 2000, configured, 3000, configured]


async def test_what_cannot_be_written_has_no_effect() -> None:
    world = Broker()
    world.store.appender.state_refusal = StoreFull("no room")
    assert (await world.change(ONE, (SIZE, SET, "9")))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await world.describe(ONE, SIZE))[SIZE][1] == 5
    assert world.defaults["max.message.bytes"] == "1048588"


def test_every_setting_that_can_change_has_bounds() -> None:
    for name, each in changeable_settings().items():
        setting = SETTINGS[name]
        if each.kind is int:
            assert setting.minimum is not None and setting.maximum is not None, name
