import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, SYNC, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.kafka.handlers.create_partitions import CreatePartitions
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX, NewTopic

LATEST = 3


class Growing(Admin):
    def __init__(
        self, topics_config: TopicsConfig | None = None, store: StoreConfig = CONFIG
    ) -> None:
        self.topics_config = topics_config or TopicsConfig()
        super().__init__(store)
        self.topic("a", 3)
        self.handler = CreatePartitions(
            catalog=self.catalog,
            replicas=Replicas(NODE_ID, is_strict=False),
            durability=self.durability,
            throttling=self.throttling,
        )

    async def grow(
        self, *topics: CreatePartitionsTopic, version: int = LATEST, dry: bool = False
    ) -> list[Any]:
        request = CreatePartitionsRequest(topics=list(topics), validate_only=dry)
        response = await seen(self.handler.handle(request, call(version)), version)
        return list(response.results)


def topic(
    name: str, count: int, assigned: Sequence[list[int]] | None = None
) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=(
            None
            if assigned is None
            else [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assigned]
        ),
    )


@pytest.mark.parametrize("version", range(LATEST + 1))
async def test_a_topic_grows(version: int) -> None:
    world = Growing()
    world.append("a", 2)
    (result,) = await world.grow(topic("a", 5), version=version)
    assert (result.name, result.error_code, result.error_message) == ("a", 0, None)
    assert world.get("a").queue_count == 5
    assert [queue.next_offset for queue in world.store.queues.of(world.get("a").id)] == [
        0,
        0,
        1,
        0,
        0,
    ]


async def test_an_assignment_names_this_node_for_each_new_partition() -> None:
    world = Growing()
    (result,) = await world.grow(topic("a", 5, [[NODE_ID], [NODE_ID]]))
    assert result.error_code == 0
    assert world.get("a").queue_count == 5


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("none", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (topic("a b", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (topic("own", 5), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (topic("a", 3), ErrorCode.INVALID_PARTITIONS),
        (topic("a", 2), ErrorCode.INVALID_PARTITIONS),
        (topic("a", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("a", -1), ErrorCode.INVALID_PARTITIONS),
        (topic("a", QUEUE_COUNT_MAX + 1), ErrorCode.INVALID_PARTITIONS),
        (topic("a", 5, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", 5, [[NODE_ID]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", 4, [[NODE_ID]] * 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", 4, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", 4, [[NODE_ID, NODE_ID]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
async def test_what_cannot_be_is_refused(
    asked: CreatePartitionsTopic, code: ErrorCode, dry: bool
) -> None:
    world = Growing()
    world.store.topics.create(NewTopic(name="own", queue_count=1, is_internal=True))
    (result,) = await world.grow(asked, dry=dry)
    assert (result.name, result.error_code) == (asked.name, code)
    assert result.error_message
    assert world.get("a").queue_count == 3


async def test_a_topic_that_is_named_twice_stays_as_it_is_and_the_others_grow() -> None:
    world = Growing()
    world.topic("b", 1)
    results = await world.grow(topic("a", 5), topic("b", 2), topic("a", 6))
    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", 0),
    ]
    assert (world.get("a").queue_count, world.get("b").queue_count) == (3, 2)


async def test_only_to_validate_changes_nothing() -> None:
    world = Growing()
    (result,) = await world.grow(topic("a", 5), dry=True)
    assert result.error_code == 0
    assert world.get("a").queue_count == 3


async def test_partitions_of_all_topics_together_are_bounded() -> None:
    world = Growing(TopicsConfig(partitions_max=6))
    world.topic("b", 1)
    results = await world.grow(topic("a", 4), topic("b", 3))
    assert [result.error_code for result in results] == [0, ErrorCode.POLICY_VIOLATION]


@pytest.mark.usefixtures("unhurried")
async def test_under_sync_growth_is_reported_once_it_is_on_disk() -> None:
    world = Growing(store=SYNC)
    request = CreatePartitionsRequest(topics=[topic("a", 5)])
    response = world.handler.handle(request, call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert (await response).results[0].error_code == 0


async def test_many_topics_grow_in_slices() -> None:
    world = Growing()
    names = [f"t{index}" for index in range(2000)]
    world.store.topics.create_many([NewTopic(name=name, queue_count=1) for name in names])
    results = await world.grow(*(topic(name, 3) for name in names))
    assert [(result.name, result.error_code) for result in results] == [(name, 0) for name in names]
    assert {world.get(name).queue_count for name in names} == {3}


async def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Growing()

    def full(counts: Mapping[Topic, int]) -> None:
        raise StoreFull("no space left on device")

    monkeypatch.setattr(world.store.topics, "grow", full)
    (result,) = await world.grow(topic("a", 5))
    assert (result.error_code, result.error_message) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        "no space left on device",
    )


async def test_a_refusal_is_said_of_every_topic() -> None:
    world = Growing()
    request = CreatePartitionsRequest(topics=[topic("a", 5)])
    refused = await seen(world.handler.refuse(request, ErrorCode.NOT_CONTROLLER), LATEST)
    assert [(each.name, each.error_code) for each in refused.results] == [("a", 41)]


async def test_partitions_beyond_the_client_s_quota_are_refused() -> None:
    world = Growing()
    world.topic("b", 1)
    world.quotas.put({(("client-id", None),): {"controller_mutation_rate": 1.0}})
    grown = await world.grow(topic("a", 15), topic("b", 2))
    assert [each.error_code for each in grown] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert (world.get("a").queue_count, world.get("b").queue_count) == (15, 1)
    # An older client has no error code for it, and is throttled instead.
    (told,) = await world.grow(topic("b", 2), version=2)
    assert (told.error_code, world.get("b").queue_count) == (0, 2)
