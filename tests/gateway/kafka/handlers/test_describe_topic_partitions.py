from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.describe_topic_partitions import (
    PAGE_MAX,
    DescribeTopicPartitions,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.permitted import TOPIC_OPERATIONS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from rockgate.store.state.topicchanges import NewTopic


class DescribingPartitions(Admin):
    def __init__(self, **topics: int) -> None:
        super().__init__()
        for name, partitions in topics.items():
            self.topic(name, partitions)
        self.handler = DescribeTopicPartitions(catalog=self.catalog, placement=self.placement)

    async def ask(
        self, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
    ) -> Any:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics],
            response_partition_limit=limit,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        return await seen(self.handler.handle(request, call(0)), 0)


def page(response: Any) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    """Names with their partitions, and the cursor."""
    cursor = response.next_cursor
    return (
        [
            (topic.name, [each.partition_index for each in topic.partitions])
            for topic in response.topics
        ],
        cursor and (cursor.topic_name, cursor.partition_index),
    )


async def test_a_topic_is_described_whole() -> None:
    world = DescribingPartitions(a=2)
    response = await world.ask("a")
    (topic,) = response.topics
    assert topic.topic_id == world.get("a").id
    assert (topic.error_code, topic.is_internal) == (0, False)
    assert topic.topic_authorized_operations == TOPIC_OPERATIONS
    assert topic.partitions == [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=NODE_ID,
            leader_epoch=1,
            replica_nodes=[NODE_ID],
            isr_nodes=[NODE_ID],
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for index in range(2)
    ]
    assert response.next_cursor is None


async def test_topics_come_in_order_of_name_and_each_once() -> None:
    world = DescribingPartitions(b=1, a=1, c=1)
    assert page(await world.ask("c", "a", "c")) == ([("a", [0]), ("c", [0])], None)
    assert page(await world.ask()) == ([("a", [0]), ("b", [0]), ("c", [0])], None)


async def test_unknown_and_impossible_names_are_answered_and_count_for_nothing() -> None:
    world = DescribingPartitions(p=5)
    response = await world.ask("p", "aaa", "zzz", "a b", limit=5)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("aaa", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("p", 0),
    ]
    assert page(response)[1] == ("zzz", 0)
    assert world.names() == ["p"], "nothing was created"


@pytest.mark.parametrize(
    ("limit", "cursor", "expected"),
    [
        (4, None, ([("p", [0, 1, 2, 3])], ("p", 4))),
        (4, ("p", 4), ([("p", [4]), ("q", [0, 1, 2])], ("q", 3))),
        (4, ("q", 2), ([("q", [2, 3, 4])], None)),
        (5, None, ([("p", [0, 1, 2, 3, 4])], ("q", 0))),
        (10, None, ([("p", [0, 1, 2, 3, 4]), ("q", [0, 1, 2, 3, 4])], None)),
        (0, None, ([("p", [0])], ("p", 1))),
        (-1, ("q", 4), ([("q", [4])], None)),
        (4, ("p", 77), ([("p", []), ("q", [0, 1, 2, 3])], ("q", 4))),
    ],
)
@pytest.mark.parametrize("asked", [("q", "p"), ()])
async def test_a_page_ends_at_its_limit_and_the_next_begins_there(
    asked: tuple[str, ...], limit: int, cursor: tuple[str, int] | None, expected: Any
) -> None:
    world = DescribingPartitions(p=5, q=5)
    assert page(await world.ask(*asked, limit=limit, cursor=cursor)) == expected


async def test_the_server_bounds_a_page() -> None:
    world = DescribingPartitions(p=PAGE_MAX + 5)
    response = await world.ask("p", limit=1_000_000)
    assert len(response.topics[0].partitions) == PAGE_MAX
    assert page(response)[1] == ("p", PAGE_MAX)
    assert page(await world.ask("p", cursor=("p", PAGE_MAX))) == (
        [("p", list(range(PAGE_MAX, PAGE_MAX + 5)))],
        None,
    )


@pytest.mark.parametrize("cursor", [("p", -1), ("other", 0)])
async def test_a_cursor_that_leads_nowhere_is_an_invalid_request(cursor: tuple[str, int]) -> None:
    world = DescribingPartitions(p=5)
    with pytest.raises(RequestError) as caught:
        await world.ask("p", cursor=cursor)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


async def test_where_all_are_asked_for_a_cursor_s_topic_may_be_gone() -> None:
    world = DescribingPartitions(a=2, c=2)
    assert page(await world.ask(cursor=("b", 1))) == ([("c", [0, 1])], None)
    world.store.topics.delete([world.get("a")])
    assert page(await world.ask(limit=1)) == ([("c", [0])], ("c", 1))


async def pages(world: DescribingPartitions, limit: int) -> list[tuple[str, int]]:
    """Every partition that a client which follows the cursor gets to see."""
    found: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        topics, cursor = page(await world.ask(limit=limit, cursor=cursor))
        found += [(name, index) for name, indexes in topics for index in indexes]
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 7, 500, 2000])
async def test_a_client_that_follows_the_cursor_sees_every_partition_once(limit: int) -> None:
    world = DescribingPartitions()
    world.store.topics.create_many(
        [NewTopic(name=f"t{index:03}", queue_count=1 + index % 5) for index in range(100)]
    )
    world.topic("a|hidden")

    def expected() -> Iterator[tuple[str, int]]:
        for number in range(100):
            for index in range(1 + number % 5):
                yield f"t{number:03}", index

    assert await pages(world, limit) == list(expected())


async def test_many_names_are_answered_in_slices() -> None:
    world = DescribingPartitions(a=1)
    asked = [f"n{index:05}" for index in range(10_000)]
    expected = [("a", [0]), *((name, []) for name in asked)]
    assert page(await world.ask("a", *asked)) == (expected, None)


async def test_a_refusal_is_said_of_every_topic() -> None:
    world = DescribingPartitions()
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="a")])
    refused = await seen(world.handler.refuse(request, ErrorCode.INVALID_REQUEST), 0)
    assert [(topic.name, topic.error_code) for topic in refused.topics] == [("a", 42)]
