import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, SYNC, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.handlers import create_topics
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreateTopicsRequest,
)
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX, NewTopic

LATEST = 7
ZERO = bytes(16)


class Creating(Admin):
    def __init__(
        self,
        topics_config: TopicsConfig | None = None,
        store: StoreConfig = CONFIG,
        defaults: TopicDefaults | None = None,
    ) -> None:
        self.topics_config = topics_config or TopicsConfig()
        super().__init__(store)
        self.handler = CreateTopics(
            catalog=self.catalog,
            replicas=Replicas(NODE_ID, is_strict=self.topics_config.replication_strict),
            defaults=defaults or TopicDefaults(),
            config=self.topics_config,
            durability=self.durability,
            throttling=self.throttling,
        )

    async def create(
        self, *topics: CreatableTopic, version: int = LATEST, dry: bool = False
    ) -> list[Any]:
        request = CreateTopicsRequest(topics=list(topics), validate_only=dry)
        response = await seen(self.handler.handle(request, call(version)), version)
        return list(response.topics)

    async def refused(self, topic: CreatableTopic) -> int:
        """The code for a topic that cannot be created; whether it is only tried or not."""
        codes: set[int] = set()
        for dry in (True, False):
            had = self.names()
            (result,) = await self.create(topic, dry=dry)
            assert self.names() == had
            assert result.name == topic.name
            assert result.error_message
            assert (result.topic_id, result.configs) == (ZERO, [])
            assert (result.num_partitions, result.replication_factor) == (-1, -1)
            codes.add(result.error_code)
        (code,) = codes
        return code


def topic(
    name: str = "t",
    partitions: int = 1,
    replicas: int = 1,
    assigned: Sequence[tuple[int, list[int]]] = (),
    **config: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in assigned
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ],
    )


@pytest.mark.parametrize("version", range(2, LATEST + 1))
async def test_a_topic_is_created_as_asked_for(version: int) -> None:
    world = Creating()
    (result,) = await world.create(topic("a", 3, retention_ms=" 5000 "), version=version)
    made = world.get("a")
    assert (made.queue_count, made.config) == (3, {"retention.ms": "5000"})
    assert len(world.store.queues.of(made.id)) == 3
    assert (result.name, result.error_code, result.error_message) == ("a", 0, None)
    assert result.topic_id == (made.id if version >= 7 else ZERO)
    assert result.num_partitions == (3 if version >= 5 else -1)
    assert result.replication_factor == (1 if version >= 5 else -1)
    assert len(result.configs or ()) == (len(TOPIC_CONFIGS) if version >= 5 else 0)


async def test_the_answer_has_every_config_with_its_source() -> None:
    world = Creating(defaults=TopicDefaults({"max.message.bytes": "7"}))
    (result,) = await world.create(topic("a", retention_ms="5"))
    found = {config.name: config for config in result.configs}
    assert list(found) == list(TOPIC_CONFIGS)
    assert found["retention.ms"] == CreatableTopicConfigs(
        name="retention.ms", value="5", config_source=1
    )
    assert found["max.message.bytes"] == CreatableTopicConfigs(
        name="max.message.bytes", value="7", config_source=4
    )
    assert found["segment.ms"] == CreatableTopicConfigs(
        name="segment.ms", value="604800000", config_source=5
    )


@pytest.mark.parametrize("version", range(2, LATEST + 1))
async def test_the_server_chooses_where_the_client_does_not(version: int) -> None:
    world = Creating(TopicsConfig(partitions=9))
    (result,) = await world.create(topic("a", -1, -1), version=version)
    assert result.error_code == 0
    assert world.get("a").queue_count == 9


@pytest.mark.parametrize("factor", [1, 2, 3, -1])
async def test_usual_replication_factors_are_taken_and_told_as_one(factor: int) -> None:
    world = Creating()
    (result,) = await world.create(topic("a", 1, factor))
    assert (result.error_code, result.replication_factor) == (0, 1)


async def test_strictly_a_second_replica_is_refused() -> None:
    world = Creating(TopicsConfig(replication_strict=True))
    assert await world.refused(topic("a", 1, 2)) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert (await world.create(topic("a", 1, 1)))[0].error_code == 0


async def test_partitions_may_be_assigned_to_this_node() -> None:
    world = Creating()
    assigned = [(1, [NODE_ID]), (0, [NODE_ID])]
    (result,) = await world.create(topic("a", -1, -1, assigned))
    assert (result.error_code, result.num_partitions) == (0, 2)
    assert world.get("a").queue_count == 2


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("%RETRY%g"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("rmq.retry.g"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("rmq_sys_x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("there", 0, retention_ms="x"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 0, 9), ErrorCode.INVALID_PARTITIONS),
        (topic("t", QUEUE_COUNT_MAX + 1), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 2**31 - 1), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 2, -1, [(0, [NODE_ID]), (1, [NODE_ID])]), ErrorCode.INVALID_REQUEST),
        (topic("t", -1, 1, [(0, [NODE_ID])]), ErrorCode.INVALID_REQUEST),
        (topic("t", -1, -1, [(1, [NODE_ID])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [NODE_ID])] * 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, [(0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", retention_ms="x"), ErrorCode.INVALID_CONFIG),
        (topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (topic("t", no_such="x"), ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda value: value.name[:20] if isinstance(value, ErrorCode) else None,
)
async def test_what_cannot_be_is_refused(asked: CreatableTopic, code: ErrorCode) -> None:
    world = Creating()
    world.topic("there")
    assert await world.refused(asked) == code


async def test_a_name_that_comes_twice_is_refused_once_and_the_others_are_created() -> None:
    world = Creating()
    results = await world.create(topic("a"), topic("b"), topic("a", 2))
    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", 0),
    ]
    assert world.names() == ["b"]


async def test_names_that_kafka_would_confuse_may_both_exist() -> None:
    world = Creating()
    results = await world.create(topic("a.b"), topic("a_b"))
    assert [result.error_code for result in results] == [0, 0]


async def test_only_to_validate_creates_nothing_and_answers_the_same() -> None:
    world = Creating()
    (tried,) = await world.create(topic("a", 3, retention_ms="5"), dry=True)
    assert world.names() == []
    (done,) = await world.create(topic("a", 3, retention_ms="5"))
    assert tried.topic_id == ZERO
    done.topic_id = ZERO
    assert tried == done


async def test_partitions_of_all_topics_together_are_bounded() -> None:
    world = Creating(TopicsConfig(partitions_max=10))
    results = await world.create(topic("a", 6), topic("b", 5), topic("c", 4))
    assert [result.error_code for result in results] == [0, ErrorCode.POLICY_VIOLATION, 0]
    assert "partitions_max" in results[1].error_message
    assert await world.refused(topic("d", 1)) == ErrorCode.POLICY_VIOLATION


async def test_a_name_is_free_again_after_delete_and_gives_another_topic() -> None:
    world = Creating()
    (first,) = await world.create(topic("a"))
    world.store.topics.delete([world.get("a")])
    (second,) = await world.create(topic("a"))
    assert second.error_code == 0
    assert second.topic_id != first.topic_id


async def test_topics_are_there_after_a_restart() -> None:
    world = Creating()
    (result,) = await world.create(topic("a", 3, cleanup_policy="compact"))
    world.reopen()
    made = world.get("a")
    assert (made.id, made.queue_count, made.config) == (
        result.topic_id,
        3,
        {"cleanup.policy": "compact"},
    )


@pytest.mark.usefixtures("unhurried")
async def test_under_sync_a_topic_is_reported_once_it_is_on_disk() -> None:
    world = Creating(store=SYNC)
    request = CreateTopicsRequest(topics=[topic("a")])
    response = world.handler.handle(request, call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert (await response).topics[0].error_code == 0
    (tried,) = await world.create(topic("b"), dry=True)
    assert tried.error_code == 0


async def test_ten_thousand_topics_are_created_in_slices() -> None:
    world = Creating()
    names = [f"t{index:05}" for index in range(10_000)]
    world.topic("t00077")
    results = await world.create(*(topic(name) for name in names))
    assert [result.name for result in results] == names
    assert [result.name for result in results if result.error_code] == ["t00077"]
    assert all(len(result.configs) == len(TOPIC_CONFIGS) for result in results[:10])
    assert world.names() == names
    ids = {result.topic_id for result in results}
    assert len(ids) == 10_000


async def test_a_topic_of_ten_thousand_partitions_is_ordinary() -> None:
    world = Creating()
    (result,) = await world.create(topic("wide", 10_000))
    assert (result.error_code, result.num_partitions) == (0, 10_000)
    assert len(world.store.queues.of(world.get("wide").id)) == 10_000


async def test_a_full_disk_is_told_of_the_topics_that_it_kept_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Creating()

    def full(news: Sequence[NewTopic]) -> None:
        raise StoreFull("no space left on device")

    monkeypatch.setattr(world.store.topics, "create_many", full)
    results = await world.create(topic("a"), topic("b b"))
    assert [(result.error_code, result.error_message[:23]) for result in results] == [
        (ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device"),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name 'b b' is inv"),
    ]


async def test_a_refusal_is_said_of_every_topic() -> None:
    world = Creating()
    request = CreateTopicsRequest(topics=[topic("a"), topic("b")])
    refused = await seen(world.handler.refuse(request, ErrorCode.NOT_CONTROLLER), LATEST)
    assert [(each.name, each.error_code) for each in refused.topics] == [("a", 41), ("b", 41)]


async def test_partitions_beyond_the_client_s_quota_are_refused() -> None:
    world = Creating()
    world.quotas.put({(("client-id", None),): {"controller_mutation_rate": 1.0}})
    made = await world.create(topic("a", partitions=12), topic("b", partitions=1))
    assert [each.error_code for each in made] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert world.names() == ["a"]
    # To ask whether it could be done takes nothing from the quota.
    (told,) = await world.create(topic("b", partitions=1), dry=True)
    assert told.error_code == 0
    world.hand.advance(1)
    (told,) = await world.create(topic("b", partitions=1))
    assert told.error_code == 0


async def test_the_configs_of_so_many_topics_are_reported_and_the_rest_are_created_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(create_topics, "CONFIG_LISTS_MAX", 3)
    world = Creating()
    topics = [CreatableTopic(name=f"t-{at}", num_partitions=1) for at in range(5)]
    for topic in topics:
        topic.replication_factor = 1
    told = await world.create(*topics)
    assert [each.error_code for each in told] == [0] * 5
    assert [len(each.configs) for each in told] == [len(TOPIC_CONFIGS)] * 3 + [0] * 2
    codes = [each.topic_config_error_code for each in told]
    assert codes == [0] * 3 + [ErrorCode.POLICY_VIOLATION] * 2
    assert [each.num_partitions for each in told] == [1] * 5
    assert len(world.names()) == 5
