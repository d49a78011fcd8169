import asyncio
import logging
from collections.abc import Mapping, Sequence

import pytest
from tests.gateway.kafka.admin import NODE_ID, SYNC, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.kafka.handlers.incremental_alter_configs import IncrementalAlterConfigs
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rockgate.store.config import StoreConfig

LATEST = 1
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]
POLICY = "cleanup.policy"


class AlteringSome(Admin):
    def __init__(self, store: StoreConfig = CONFIG, **config: str) -> None:
        super().__init__(store)
        self.topic("a", 1, **config)
        self.handler = IncrementalAlterConfigs(
            alterable=self.alterable(), durability=self.durability
        )

    async def alter(
        self,
        *changes: Change,
        name: str = "a",
        type_: int = TOPIC,
        version: int = LATEST,
        dry: bool = False,
    ) -> tuple[int, str | None]:
        response = await seen(
            self.handler.handle(request(changes, name, type_, dry), call(version)), version
        )
        (result,) = response.responses
        assert (result.resource_type, result.resource_name) == (type_, name)
        return result.error_code, result.error_message

    @property
    def current(self) -> Mapping[str, str]:
        return self.get("a").config


def request(
    changes: Sequence[Change], name: str = "a", type_: int = TOPIC, dry: bool = False
) -> IncrementalAlterConfigsRequest:
    asked = AlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    return IncrementalAlterConfigsRequest(resources=[asked], validate_only=dry)


@pytest.mark.parametrize("version", range(LATEST + 1))
async def test_single_configs_are_set_and_taken_away_and_the_others_stay(version: int) -> None:
    world = AlteringSome(segment_ms="5", flush_ms="6")
    changes = [("retention.ms", SET, " 9 "), ("flush.ms", DELETE, None)]
    assert await world.alter(*changes, version=version) == (0, None)
    assert world.current == {"segment.ms": "5", "retention.ms": "9"}


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "compact", "compact"),
        ("compact", APPEND, "delete, compact", "compact,delete"),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "compact,delete", ""),
        (None, SUBTRACT, "delete", ""),
        ("", APPEND, "compact", "compact"),
    ],
)
async def test_lists_are_added_to_and_taken_from(
    before: str | None, operation: int, value: str, after: str
) -> None:
    world = AlteringSome() if before is None else AlteringSome(cleanup_policy=before)
    assert await world.alter((POLICY, operation, value)) == (0, None)
    assert world.current == {POLICY: after}


async def test_to_take_away_what_is_not_there_is_done_already() -> None:
    world = AlteringSome(segment_ms="5")
    assert await world.alter(("flush.ms", DELETE, None), ("no.such", DELETE, "x")) == (0, None)
    assert world.current == {"segment.ms": "5"}


async def test_what_other_protocols_keep_with_a_topic_stays() -> None:
    world = AlteringSome(order="true")
    assert await world.alter(("order", DELETE, None)) == (0, None)
    assert world.current == {"order": "true"}
    code, _ = await world.alter(("order", SET, "false"))
    assert code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ([("segment.ms", SET, "x")], ErrorCode.INVALID_CONFIG, "must be an integer"),
        ([("retention.mss", SET, "1")], ErrorCode.INVALID_CONFIG, "mean 'retention.ms'"),
        ([("segment.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "is not a list"),
        ([("segment.ms", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG, "is not a list"),
        ([("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config"),
        ([(POLICY, APPEND, "squeeze")], ErrorCode.INVALID_CONFIG, "must be a list of"),
        ([("segment.ms", SET, None)], ErrorCode.INVALID_REQUEST, "requires a value"),
        ([(POLICY, APPEND, None)], ErrorCode.INVALID_REQUEST, "requires a value"),
        ([("segment.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "Unknown operation 9."),
        (
            [("segment.ms", SET, "1"), ("segment.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "more than once",
        ),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
            "must not exceed",
        ),
    ],
)
async def test_one_wrong_change_and_nothing_of_the_topic_is_changed(
    changes: list[Change], code: ErrorCode, reason: str
) -> None:
    world = AlteringSome(retention_ms="5")
    found, message = await world.alter(("flush.ms", SET, "1"), *changes)
    assert found == code
    assert reason in (message or "")
    assert world.current == {"retention.ms": "5"}


async def test_configs_are_checked_together_with_those_that_stay() -> None:
    world = AlteringSome(min_compaction_lag_ms="9")
    code, _ = await world.alter(("max.compaction.lag.ms", SET, "8"))
    assert code == ErrorCode.INVALID_CONFIG
    changes = [("max.compaction.lag.ms", SET, "8"), ("min.compaction.lag.ms", DELETE, None)]
    assert await world.alter(*changes) == (0, None)


async def test_an_unknown_topic_and_the_broker_are_not_altered() -> None:
    world = AlteringSome()
    code, _ = await world.alter(name="none")
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code, reason = await world.alter(("x", SET, "1"), name=str(NODE_ID), type_=BROKER)
    assert (code, reason) == (
        ErrorCode.INVALID_REQUEST,
        "Broker configs cannot be changed at run time.",
    )


async def test_only_to_validate_changes_nothing() -> None:
    world = AlteringSome()
    assert await world.alter(("flush.ms", SET, "1"), dry=True) == (0, None)
    assert world.current == {}


@pytest.mark.usefixtures("unhurried")
async def test_under_sync_a_change_is_reported_once_it_is_on_disk() -> None:
    world = AlteringSome(SYNC)
    world.store.flush()
    response = world.handler.handle(request([("flush.ms", SET, "1")]), call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert (await response).responses[0].error_code == 0


async def test_a_refusal_is_said_of_every_resource() -> None:
    world = AlteringSome()
    refused = await seen(world.handler.refuse(request([]), ErrorCode.NOT_CONTROLLER), LATEST)
    assert [(each.resource_name, each.error_code) for each in refused.responses] == [("a", 41)]


async def test_a_group_s_configs_are_kept_whether_it_exists_or_not() -> None:
    world = AlteringSome()
    set_both = [("consumer.session.timeout.ms", SET, "46000"), ("share.isolation.level", SET, "x")]
    code, reason = await world.alter(*set_both, name="g", type_=GROUP)
    assert (code, "read_committed" in (reason or "")) == (ErrorCode.INVALID_CONFIG, True)
    assert world.configs.of(GROUP, "g") == {}
    assert await world.alter(set_both[0], name="g", type_=GROUP) == (0, None)
    assert await world.alter(set_both[0], name="h", type_=GROUP, dry=True) == (0, None)
    world.reopen()
    assert world.configs.of(GROUP, "g") == {"consumer.session.timeout.ms": "46000"}
    assert list(world.configs.names(GROUP)) == ["g"]


async def test_what_is_taken_away_from_a_group_leaves_nothing_behind() -> None:
    world = AlteringSome()
    change = ("consumer.heartbeat.interval.ms", SET, "6000")
    await world.alter(change, name="g", type_=GROUP)
    gone = [("consumer.heartbeat.interval.ms", DELETE, None), ("unknown", DELETE, None)]
    assert await world.alter(*gone, name="g", type_=GROUP) == (0, None)
    assert list(world.configs.names(GROUP)) == []
    code, _ = await world.alter(change, name="", type_=GROUP)
    assert code == ErrorCode.INVALID_REQUEST


async def test_the_level_of_a_logger_is_changed_at_once_and_taken_away_again() -> None:
    name = "rockgate.gateway.kafka.server.session"
    logger, world = logging.getLogger(name), AlteringSome()
    node = str(NODE_ID)
    try:
        assert await world.alter((name, SET, "DEBUG"), name=node, type_=LOGGER) == (0, None)
        assert logger.level == logging.DEBUG
        code, reason = await world.alter((name, SET, "LOUD"), name=node, type_=LOGGER)
        assert (code, "WARN" in (reason or "")) == (ErrorCode.INVALID_CONFIG, True)
        assert await world.alter((name, DELETE, None), name=node, type_=LOGGER) == (0, None)
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("change", "node", "code"),
    [
        (("nobody", SET, "INFO"), str(NODE_ID), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), str(NODE_ID), ErrorCode.INVALID_REQUEST),
        (("root", APPEND, "INFO"), str(NODE_ID), ErrorCode.INVALID_CONFIG),
        (("root", SET, "INFO"), str(NODE_ID + 1), ErrorCode.INVALID_REQUEST),
        (("root", SET, "INFO"), "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_logger_that_is_not_there_has_no_level(
    change: Change, node: str, code: ErrorCode
) -> None:
    level = logging.getLogger().level
    assert (await AlteringSome().alter(change, name=node, type_=LOGGER))[0] == code
    assert logging.getLogger().level == level
