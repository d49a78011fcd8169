"""OffsetFetch: what was committed, what never was, all of it, many groups."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import cast

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.offset_asks import merged
from rockgate.gateway.kafka.handlers.offset_fetch import SLICE_COUNT, OffsetFetch
from rockgate.gateway.kafka.request.chunked import Room, at_once
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rockgate.protocol.kafka.schema import Encoded, decode, encode

Found = dict[tuple[str, int], tuple[int, int, str | None, int]]


def fetch(
    world: Coordinator, version: int, asked: dict[str, list[int]] | None, group: str = "g"
) -> Found:
    """The response to a client of this version, by topic name and partition."""
    response = world.ask(request_of(world, version, asked, group), OffsetFetchResponse, version)
    return told(world, version, asked, group, response)


def request_of(
    world: Coordinator, version: int, asked: dict[str, list[int]] | None, group: str
) -> OffsetFetchRequest:
    if version < 8:
        topics = None
        if asked is not None:
            topics = [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in asked.items()
            ]
        return OffsetFetchRequest(group_id=group, topics=topics)
    many = None
    if asked is not None:
        many = [
            OffsetFetchRequestTopics(name=name, topic_id=id_of(world, name), partition_indexes=at)
            for name, at in asked.items()
        ]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=many)]
    return OffsetFetchRequest(groups=groups, require_stable=True)


def told(
    world: Coordinator,
    version: int,
    asked: dict[str, list[int]] | None,
    group: str,
    response: OffsetFetchResponse,
) -> Found:
    topics: Sequence[OffsetFetchResponseTopic | OffsetFetchResponseTopics] = response.topics
    if version >= 8:
        [found] = response.groups
        assert (found.group_id, found.error_code) == (group, 0)
        topics = found.topics
    assert response.error_code == 0
    names = {id_of(world, name): name for name in ("orders", *(asked or ()))}
    return {
        (topic.name or names[getattr(topic, "topic_id", b"")], each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for topic in topics
        for each in topic.partitions
        if not isinstance(each, Encoded)
    }


def id_of(world: Coordinator, name: str) -> bytes:
    topic = world.store.topics.find(name)
    return topic.id if topic is not None else b"\7" * 16


@pytest.mark.parametrize("version", range(1, 11))
def test_what_was_committed_comes_back_in_every_version(version: int) -> None:
    world = Coordinator()
    world.topic(partitions=3)
    world.commit(5, metadata="note")
    epoch = 3 if version >= 5 else -1
    assert fetch(world, version, {"orders": [0, 1]}) == {
        ("orders", 0): (5, epoch, "note", 0),
        ("orders", 1): (-1, -1, "", 0),
    }


@pytest.mark.parametrize("version", range(1, 11))
def test_an_unknown_group_has_committed_nothing_and_that_is_no_error(version: int) -> None:
    world = Coordinator()
    world.topic()
    assert fetch(world, version, {"orders": [0]}, "nobody") == {("orders", 0): (-1, -1, "", 0)}


@pytest.mark.parametrize("version", range(1, 11))
def test_an_unknown_topic_is_an_error_only_by_id(version: int) -> None:
    world = Coordinator()
    code = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else 0
    assert fetch(world, version, {"nothing": [0]}) == {("nothing", 0): (-1, -1, "", code)}


@pytest.mark.parametrize("version", range(2, 11))
def test_null_topics_are_all_that_was_committed(version: int) -> None:
    world = Coordinator()
    world.topic(partitions=3)
    for partition in (2, 0):
        world.commit(partition + 5, partition=partition)
    world.commit(1, "other")
    found = fetch(world, version, None)
    assert {key: each[0] for key, each in found.items()} == {("orders", 0): 5, ("orders", 2): 7}
    assert fetch(world, version, None, "nobody") == {}


@pytest.mark.parametrize("version", range(8, 11))
def test_many_groups_are_answered_each(version: int) -> None:
    world = Coordinator()
    topic = world.topic()
    world.commit(1, "a")
    world.commit(2, "b")
    asked = [OffsetFetchRequestTopics(name="orders", topic_id=topic.id, partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked) for group in "abc"]
    )
    response = world.ask(request, OffsetFetchResponse, version)
    assert {
        group.group_id: each.committed_offset
        for group in response.groups
        for each in group.topics[0].partitions
        if not isinstance(each, Encoded)
    } == {"a": 1, "b": 2, "c": -1}


def test_an_earlier_life_of_a_topic_has_left_nothing() -> None:
    world = Coordinator()
    topic = world.topic()
    world.commit(5)
    world.store.topics.delete([topic])
    world.topic()
    assert fetch(world, 7, {"orders": [0]})["orders", 0][0] == -1
    assert fetch(world, 7, None) == {}


@pytest.mark.parametrize("version", range(1, 11))
async def test_many_partitions_are_looked_at_in_turns_and_told_alike(version: int) -> None:
    world = Coordinator()
    count = 2 * SLICE_COUNT + 5
    world.topic(partitions=count)
    for partition in (0, SLICE_COUNT - 1, SLICE_COUNT, count - 1):
        world.commit(partition + 5, partition=partition)
    asked = {"nothing": [3], "orders": list(range(count))}
    waiting = world.send(request_of(world, version, asked, "g"), version)
    response = await cast(Awaitable[OffsetFetchResponse], waiting)
    read = decode(OffsetFetchResponse, version, encode(response, version), memory_max=1 << 24)
    found = told(world, version, asked, "g", read)
    few = [0, 1, SLICE_COUNT - 1, SLICE_COUNT, SLICE_COUNT + 1, count - 1]
    assert list(found) == [("nothing", 3), *(("orders", at) for at in range(count))]
    assert {("orders", at): found["orders", at] for at in few} == fetch(
        world, version, {"orders": few}
    )


def test_a_group_that_is_named_a_hundred_times_is_answered_once() -> None:
    world = Coordinator()
    world.topic()
    world.commit(5)
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    request = OffsetFetchRequest(groups=[group] * 100)
    answer = world.ask(request, OffsetFetchResponse, 9)
    [found] = answer.groups
    assert [topic.name for topic in found.topics] == ["orders"]


def test_what_is_asked_of_a_group_at_several_places_is_answered_together() -> None:
    world = Coordinator()
    asked = [
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[index, index])],
        )
        for name, index in (("orders", 0), ("orders", 1), ("orders", 0), ("other", 0))
    ]
    [found] = world.ask(OffsetFetchRequest(groups=asked), OffsetFetchResponse, 9).groups
    told = {
        topic.name: [
            each.partition_index for each in topic.partitions if not isinstance(each, Encoded)
        ]
        for topic in found.topics
    }
    assert told == {"orders": [0, 1], "other": [0]}


async def test_an_answer_that_would_be_too_large_is_refused_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Room.__init__, "__defaults__", (1_000,))
    world = Coordinator()
    handler = OffsetFetch(
        catalog=StoreCatalog(world.store.topics, 1000),
        progress=StoreProgress(world.store.progress),
        pending=world.folds.transactions.pending,
    )
    topics = [
        OffsetFetchRequestTopics(name=f"t-{at}", partition_indexes=[0])
        for at in range(SLICE_COUNT + 1)
    ]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    with pytest.raises(RequestError, match="split the request") as refused:
        await cast(Awaitable[object], handler.handle(OffsetFetchRequest(groups=[group]), call(8)))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_a_group_that_is_named_thousands_of_times_is_merged_without_copies() -> None:
    topics = [OffsetFetchRequestTopics(name=f"t-{at}", partition_indexes=[0, 0]) for at in range(9)]
    found = at_once(merged([("g", topics[at % 9 : at % 9 + 1]) for at in range(9_000)]))
    [(group, asked)] = found
    assert group == "g" and asked is not None
    assert [each.name for each in asked] == [f"t-{at}" for at in range(9)]
    assert all(each.partition_indexes == [0] for each in asked)
    assert at_once(merged([("g", topics), ("g", None)])) == [("g", None)]
