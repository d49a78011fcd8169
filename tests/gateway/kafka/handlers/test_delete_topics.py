import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from tests.gateway.kafka.admin import SYNC, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import CONFIG

from rockgate.gateway.kafka.handlers.delete_topics import DeleteTopics
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic

LATEST = 6
ZERO = bytes(16)


class Deleting(Admin):
    def __init__(self, *names: str, store: StoreConfig = CONFIG) -> None:
        super().__init__(store)
        for name in names:
            self.topic(name, 2)
        self.handler = DeleteTopics(
            catalog=self.catalog,
            durability=self.durability,
            throttling=self.throttling,
        )

    async def delete(self, *asked: str | bytes | DeleteTopicState, version: int = LATEST) -> Any:
        response = await seen(self.handler.handle(request(*asked), call(version)), version)
        return [(each.name, each.topic_id, each.error_code) for each in response.responses]


def state(asked: str | bytes | DeleteTopicState) -> DeleteTopicState:
    if isinstance(asked, DeleteTopicState):
        return asked
    return (
        DeleteTopicState(name=asked) if isinstance(asked, str) else DeleteTopicState(topic_id=asked)
    )


def request(*asked: str | bytes | DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[state(each) for each in asked],
        topic_names=[each for each in asked if isinstance(each, str)],
    )


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_a_topic_is_deleted_by_name(version: int) -> None:
    world = Deleting("a", "b")
    topic_id = world.get("a").id
    expected = topic_id if version >= 6 else ZERO
    assert await world.delete("a", version=version) == [("a", expected, 0)]
    assert world.names() == ["b"]
    assert world.store.queues.of(topic_id) == []


async def test_a_topic_is_deleted_by_id_and_its_name_is_reported() -> None:
    world = Deleting("a", "b")
    topic_id = world.get("a").id
    assert await world.delete(topic_id) == [("a", topic_id, 0)]
    assert world.names() == ["b"]


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_a_name_that_is_not_there_is_unknown(version: int) -> None:
    world = Deleting("a")
    asked = ["none", "a b", "a"]
    found = await world.delete(*asked, version=version)
    assert [(name, code) for name, _, code in found] == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 0),
    ]


async def test_an_id_that_is_not_there_is_unknown_and_has_no_name() -> None:
    assert await Deleting().delete(b"x" * 16) == [(None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)]


async def test_a_topic_that_is_named_twice_stays() -> None:
    world = Deleting("a", "b", "c")
    a, b, c = (world.get(name).id for name in "abc")
    found = await world.delete("a", b, "a", "c", b, c, "x", "x")
    assert found == [
        ("a", ZERO, ErrorCode.INVALID_REQUEST),
        (None, b, ErrorCode.INVALID_REQUEST),
        ("c", ZERO, ErrorCode.INVALID_REQUEST),
        (None, c, ErrorCode.INVALID_REQUEST),
        ("x", ZERO, ErrorCode.INVALID_REQUEST),
    ]
    assert a and world.names() == ["a", "b", "c"]


async def test_a_topic_has_either_a_name_or_an_id() -> None:
    world = Deleting("a")
    topic_id = world.get("a").id
    both, neither = DeleteTopicState(name="a", topic_id=topic_id), DeleteTopicState()
    assert await world.delete(both, neither) == [
        ("a", topic_id, ErrorCode.INVALID_REQUEST),
        (None, ZERO, ErrorCode.INVALID_REQUEST),
    ]
    assert world.names() == ["a"]


async def test_the_server_s_own_and_hidden_topics_are_not_deleted() -> None:
    world = Deleting()
    own = world.store.topics.create(NewTopic(name="own", queue_count=1, is_internal=True))
    hidden = world.topic("a|b")
    found = await world.delete("own", own.id, hidden.id, "a|b")
    assert [code for _, _, code in found] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [code for _, _, code in await world.delete("own")] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ]
    assert len(world.names()) == 2


async def test_a_retry_topic_is_deleted_under_the_name_that_kafka_clients_know() -> None:
    world = Deleting("%RETRY%g")
    ((name, _, code),) = await world.delete("rmq.retry.g")
    assert (name, code) == ("rmq.retry.g", 0)
    assert world.names() == []


async def test_a_message_says_why_from_v5_on() -> None:
    world = Deleting()
    for version in (4, 5):
        response = await seen(world.handler.handle(request("x"), call(version)), version)
        assert bool(response.responses[0].error_message) == (version >= 5)


async def test_others_are_written_and_read_on_while_a_topic_goes() -> None:
    world = Deleting("a", "b")
    world.append("b")
    queue = world.queue("b")
    await world.delete("a")
    world.append("b")
    assert world.queue("b") is queue
    assert queue.next_offset == 2


async def test_a_name_is_free_at_once_and_what_was_there_does_not_come_back() -> None:
    world = Deleting("a")
    world.append("a")
    old = world.get("a")
    await world.delete("a")
    new = world.topic("a", 1)
    assert new.id != old.id
    assert world.queue("a").next_offset == 0
    world.reopen()
    assert world.get("a").id == new.id
    assert world.queue("a").next_offset == 0


@pytest.mark.usefixtures("unhurried")
async def test_under_sync_a_deletion_is_reported_once_it_is_on_disk() -> None:
    world = Deleting("a", store=SYNC)
    world.store.flush()
    response = world.handler.handle(request("a"), call(LATEST))
    assert isinstance(response, asyncio.Future) and not response.done()
    world.store.flush()
    assert (await response).responses[0].error_code == 0


@pytest.mark.parametrize("by_id", [False, True])
async def test_ten_thousand_topics_are_deleted_in_slices(by_id: bool) -> None:
    world = Deleting()
    made = world.store.topics.create_many(
        [NewTopic(name=f"t{index}", queue_count=1) for index in range(10_000)]
    )
    found = await world.delete(*([topic.id for topic in made] if by_id else [t.name for t in made]))
    assert found == [(topic.name, topic.id, 0) for topic in made]
    assert world.names() == []


async def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Deleting("a")

    def full(topics: Iterable[Topic]) -> None:
        raise StoreFull("no space left on device")

    monkeypatch.setattr(world.store.topics, "delete", full)
    assert await world.delete("a") == [("a", ZERO, ErrorCode.KAFKA_STORAGE_ERROR)]


@pytest.mark.parametrize("version", [5, 6])
async def test_a_refusal_is_said_of_every_topic(version: int) -> None:
    world = Deleting()
    asked = request("a") if version >= 6 else DeleteTopicsRequest(topic_names=["a"])
    refused = await seen(world.handler.refuse(asked, ErrorCode.NOT_CONTROLLER), version)
    assert [(each.name, each.error_code) for each in refused.responses] == [("a", 41)]


async def test_partitions_beyond_the_client_s_quota_are_kept() -> None:
    world = Deleting("a", "b")
    world.quotas.put({(("client-id", None),): {"controller_mutation_rate": 0.1}})
    codes = [code for _, _, code in await world.delete("a", "b")]
    assert codes == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert world.names() == ["b"]
