import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from tests.gateway.kafka.admin import IDENTITY, NODE_ID, SYNC, Admin, answered, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.kafka.handlers import metadata
from rockgate.gateway.kafka.handlers.metadata import Metadata
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.permitted import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.state.topicchanges import NewTopic

LATEST = 13
ZERO = bytes(16)


class Asking(Admin):
    def __init__(self, topics_config: TopicsConfig | None = None, store: StoreConfig = CONFIG):
        self.topics_config = topics_config or TopicsConfig()
        super().__init__(store)
        self.handler = Metadata(
            catalog=self.catalog,
            placement=self.placement,
            metadata_cache=self.metadata_cache,
            cluster_id=IDENTITY.cluster_id,
            config=self.topics_config,
            durability=self.durability,
        )

    async def ask(self, topics: Iterable[str] | None, version: int = LATEST, **more: Any) -> Any:
        """The answer to names; null asks for all of them."""
        return await seen(self.handler.handle(request(topics, **more), call(version)), version)

    async def ask_ids(self, *ids: bytes) -> Any:
        asked = [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
        return await seen(self.handler.handle(MetadataRequest(topics=asked), call(LATEST)), LATEST)


def request(topics: Iterable[str] | None, **more: Any) -> MetadataRequest:
    more.setdefault("allow_auto_topic_creation", False)
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=asked, **more)


def names(response: MetadataResponse) -> list[str | None]:
    assert all(isinstance(topic, MetadataResponseTopic) for topic in response.topics)
    return [topic.name for topic in response.topics]  # type: ignore[union-attr]  # just asserted


def codes(response: Any) -> list[int]:
    return [topic.error_code for topic in response.topics]


@pytest.mark.parametrize("version", range(LATEST + 1))
async def test_the_cluster_is_this_node(version: int) -> None:
    response = await Asking().ask(["x"], version)
    assert response.brokers == [MetadataResponseBroker(node_id=NODE_ID, host="here", port=9092)]
    assert response.cluster_id == (IDENTITY.cluster_id if version >= 2 else None)
    assert response.controller_id == (NODE_ID if version >= 1 else -1)


async def test_in_v0_an_empty_list_asks_for_all_and_later_for_none() -> None:
    world = Asking()
    world.topic("a")
    assert names(await world.ask([], 0)) == ["a"]
    for version in range(1, LATEST + 1):
        assert names(await world.ask([], version)) == []
        assert names(await world.ask(None, version)) == ["a"]


@pytest.mark.parametrize("version", range(LATEST + 1))
async def test_a_topic_is_described_with_its_partitions_and_their_leader(version: int) -> None:
    world = Asking()
    topic = world.topic("a", 3)
    (found,) = (await world.ask(["a"], version)).topics
    assert (found.error_code, found.name, found.is_internal) == (0, "a", False)
    assert found.topic_id == (topic.id if version >= 10 else ZERO)
    assert [each.partition_index for each in found.partitions] == [0, 1, 2]
    for each in found.partitions:
        assert each.error_code == 0
        assert (each.leader_id, each.replica_nodes, each.isr_nodes) == (
            NODE_ID,
            [NODE_ID],
            [NODE_ID],
        )
        assert each.leader_epoch == (world.store.epochs.current if version >= 7 else -1)
        assert each.offline_replicas == []


async def test_an_unknown_topic_is_unknown_and_a_bad_name_is_invalid() -> None:
    world = Asking()
    asked = ["none", "a b", "", "..", "x" * 250, "%RETRY%g"]
    response = await world.ask(asked)
    assert names(response) == asked
    assert (
        codes(response)
        == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] + [ErrorCode.INVALID_TOPIC_EXCEPTION] * 5
    )


async def test_a_topic_asked_for_twice_is_answered_once() -> None:
    world = Asking()
    world.topic("a")
    assert names(await world.ask(["a", "b", "a", "b"])) == ["a", "b"]


async def test_topics_are_found_by_id() -> None:
    world = Asking()
    topic = world.topic("a")
    response = await world.ask_ids(topic.id, b"x" * 16)
    assert names(response) == ["a", None]
    assert codes(response) == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert response.topics[1].topic_id == b"x" * 16


async def test_after_delete_and_create_a_name_has_another_id_and_the_old_one_is_unknown() -> None:
    world = Asking()
    old = world.topic("a", 2)
    await world.ask(["a"])
    world.store.topics.delete([old])
    new = world.topic("a", 1)
    (found,) = (await world.ask(["a"])).topics
    assert (found.topic_id, len(found.partitions)) == (new.id, 1)
    assert codes(await world.ask_ids(old.id)) == [ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "asked",
    [
        MetadataRequestTopic(topic_id=b"x" * 16, name="a"),
        MetadataRequestTopic(topic_id=b"x" * 16, name=None),
        MetadataRequestTopic(name=None),
    ],
)
async def test_before_v12_an_id_is_an_invalid_request(
    version: int, asked: MetadataRequestTopic
) -> None:
    world = Asking()
    wrong = MetadataRequest(topics=[asked])
    with pytest.raises(RequestError) as caught:
        world.handler.handle(wrong, call(version))
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    refused = await seen(world.handler.refuse(wrong, caught.value.code), version)
    assert codes(refused) == [ErrorCode.INVALID_REQUEST]
    assert refused.brokers == []


async def test_from_v13_a_refusal_is_said_of_the_whole_too() -> None:
    refused = await seen(Asking().handler.refuse(request(["a"]), ErrorCode.NOT_CONTROLLER), LATEST)
    assert (refused.error_code, codes(refused)) == (41, [41])


async def test_operations_are_reported_only_when_asked_for() -> None:
    world = Asking()
    world.topic("a")
    for version in range(8, LATEST + 1):
        response = await world.ask(
            ["a"],
            version,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        assert response.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
        assert response.cluster_authorized_operations == (
            CLUSTER_OPERATIONS if version <= 10 else NOT_ASKED
        )
        response = await world.ask(["a"], version)
        assert response.topics[0].topic_authorized_operations == NOT_ASKED
        assert response.cluster_authorized_operations == NOT_ASKED


async def test_internal_topics_are_marked_and_unspeakable_ones_hidden() -> None:
    world = Asking()
    for name in ("__consumer_offsets", "rmq_sys_wheel_timer"):
        world.store.topics.create(NewTopic(name=name, queue_count=1, is_internal=True))
    world.topic("%DLQ%group")
    hidden = world.topic("a|b")
    response = await world.ask(None)
    assert [(topic.name, topic.is_internal) for topic in response.topics] == [
        ("__consumer_offsets", True),
        ("rmq.dlq.group", False),
    ]
    assert codes(await world.ask_ids(hidden.id)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert names(await world.ask(["rmq_sys_wheel_timer"])) == ["rmq_sys_wheel_timer"]
    assert names(await world.ask(["rmq.dlq.group"])) == ["rmq.dlq.group"]


# Creation by asking


@pytest.mark.parametrize("version", [0, 1, 4, LATEST])
async def test_an_unknown_topic_is_created_where_both_sides_allow_it(version: int) -> None:
    world = Asking()
    response = await world.ask(["new"], version, allow_auto_topic_creation=True)
    assert codes(response) == [0]
    assert len(response.topics[0].partitions) == 4
    assert world.names() == ["new"]


async def test_a_client_from_v4_on_may_forbid_creation() -> None:
    world = Asking()
    assert codes(await world.ask(["new"], 4)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.names() == []


async def test_the_server_may_forbid_creation() -> None:
    world = Asking(TopicsConfig(auto_create=False))
    response = await world.ask(["new"], allow_auto_topic_creation=True)
    assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.names() == []


async def test_a_created_topic_gets_the_partitions_of_the_setting() -> None:
    world = Asking(TopicsConfig(partitions=9))
    response = await world.ask(["new"], allow_auto_topic_creation=True)
    assert len(response.topics[0].partitions) == 9


async def test_what_cannot_be_created_says_why_and_the_others_are_described() -> None:
    world = Asking(TopicsConfig(partitions=4, partitions_max=10))
    world.topic("old")
    response = await world.ask(
        ["new", "rmq.retry.g", "rmq_sys_x", "a b", "two", "three", "old"],
        allow_auto_topic_creation=True,
    )
    assert codes(response) == [
        0,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        0,
        ErrorCode.POLICY_VIOLATION,
        0,
    ]
    assert world.names() == ["new", "old", "two"]


async def test_a_full_disk_is_told_of_the_new_topic_only(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Asking()
    world.topic("old")

    def full(news: Sequence[NewTopic]) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(world.store.topics, "create_many", full)
    response = await world.ask(["new", "old"], allow_auto_topic_creation=True)
    assert codes(response) == [ErrorCode.KAFKA_STORAGE_ERROR, 0]


async def test_one_request_creates_a_bounded_number_of_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "AUTO_CREATE_MAX", 100)
    world = Asking(TopicsConfig(partitions=1))
    asked = [f"t{index}" for index in range(150)]
    response = await world.ask(asked, allow_auto_topic_creation=True)
    assert codes(response) == [0] * 100 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 50
    response = await world.ask(asked, allow_auto_topic_creation=True)
    assert codes(response) == [0] * 150


async def test_under_sync_a_created_topic_is_reported_once_it_is_on_disk() -> None:
    world = Asking(store=SYNC)
    asked = request(["new"], allow_auto_topic_creation=True)
    response = world.handler.handle(asked, call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert codes(await seen(response, LATEST)) == [0]
    world.topic("other")
    assert isinstance(world.handler.handle(asked, call(LATEST)), MetadataResponse)


# Many of them


@pytest.mark.parametrize("version", [0, 12])
async def test_all_topics_are_the_same_from_slices_and_from_what_was_kept(version: int) -> None:
    world = Asking()
    world.store.topics.create_many(
        [NewTopic(name=f"t{index}", queue_count=1 + index % 3) for index in range(3000)]
    )
    first = await world.ask(None if version else [], version)
    assert sorted(filter(None, names(first))) == world.names()
    assert await world.ask(None if version else [], version) == first
    world.topic("one more")
    world.topic("more")
    assert len((await world.ask(None if version else [], version)).topics) == 3001
    world.store.topics.delete([world.get("t0")])
    assert len((await world.ask(None if version else [], version)).topics) == 3000


async def test_a_list_that_changed_while_it_was_made_is_not_kept() -> None:
    world = Asking()
    world.store.topics.create_many(
        [NewTopic(name=f"t{index}", queue_count=1) for index in range(3000)]
    )
    pending = asyncio.ensure_future(answered(world.handler.handle(request(None), call(12))))
    await asyncio.sleep(0)
    assert not pending.done()
    world.topic("late")
    await pending
    assert "late" in names(await world.ask(None, 12))


async def test_many_names_are_answered_in_order() -> None:
    world = Asking()
    world.topic("t7")
    asked = [f"t{index}" for index in range(5000)]
    response = await world.ask(asked)
    assert names(response) == asked
    assert [index for index, code in enumerate(codes(response)) if code == 0] == [7]


async def test_ten_thousand_partitions_do_not_hold_the_loop() -> None:
    """How long a turn takes is measured by the benchmark; that there are many of them, here."""
    world = Asking()
    world.store.topics.create_many(
        [NewTopic(name=f"t{index}", queue_count=1) for index in range(5000)]
    )
    world.topic("wide", 5000)
    pending = asyncio.ensure_future(answered(world.handler.handle(request(None), call(12))))
    turns = 0
    while not pending.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 4
