import pytest
from tests.cli.client.brokers import Brokers

from rockgate.cli.client.admin import offsets
from rockgate.cli.client.admin.offsets import FoundOffset
from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused, Unreachable
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def found(request: ListOffsetsRequest, offset: int, code: int = 0) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=code, offset=offset
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_each_partition_is_asked_at_its_leader() -> None:
    brokers = Brokers({("a", 0): 1, ("a", 1): 2, ("b", 0): 2}, nodes=(1, 2))
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda node, request: found(request, node * 10)
    async with brokers.cluster() as cluster:
        places = dict.fromkeys([("a", 0), ("a", 1), ("b", 0)], offsets.LATEST)
        answer = await offsets.list_offsets(cluster, places)
    assert answer == {
        ("a", 0): FoundOffset(10, -1),
        ("a", 1): FoundOffset(20, -1),
        ("b", 0): FoundOffset(20, -1),
    }
    assert sorted(node for node, _ in brokers.requests(ListOffsetsRequest)) == [1, 2]


async def test_a_leader_that_moved_is_looked_up_again() -> None:
    brokers = Brokers({("a", 0): 1, ("a", 1): 2}, nodes=(1, 2))

    def move(node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        if node == 1:
            brokers.leaders["a", 0] = 2
            return found(request, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found(request, 7)

    brokers.answers[ApiKey.LIST_OFFSETS] = move
    async with brokers.cluster() as cluster:
        answer = await offsets.list_offsets(cluster, {("a", 0): -1, ("a", 1): -1})
    assert set(answer.values()) == {FoundOffset(7, -1)}
    # What was answered the first time is not asked again.
    assert [node for node, _ in brokers.requests(ListOffsetsRequest)] == [1, 2, 2]


async def test_a_leader_that_does_not_come_back_is_given_up_in_time() -> None:
    brokers = Brokers({("a", 0): 1})
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda node, request: found(
        request, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    async with brokers.cluster(timeout_s=0.2) as cluster:
        with pytest.raises(Refused, match="NOT_LEADER_OR_FOLLOWER"):
            await offsets.list_offsets(cluster, {("a", 0): -1})


async def test_what_is_not_there_is_an_answer_and_no_error_of_the_others() -> None:
    brokers = Brokers({("a", 0): 1})
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda node, request: found(request, 3)
    async with brokers.cluster() as cluster:
        answer = await offsets.list_offsets(cluster, {("a", 0): -1, ("a", 5): -1, ("b", 0): -1})
    assert answer["a", 0] == FoundOffset(3, -1)
    for place in (("a", 5), ("b", 0)):
        refused = answer[place]
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_coordinator_that_is_not_ready_is_asked_for_again() -> None:
    brokers = Brokers(nodes=(1, 2))
    codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]

    def find(node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        code = codes.pop() if codes else ErrorCode.NONE
        told = Coordinator(key="g", node_id=2, host="node2", port=9092, error_code=code)
        return FindCoordinatorResponse(coordinators=[told])

    brokers.answers[ApiKey.FIND_COORDINATOR] = find
    async with brokers.cluster() as cluster:
        broker = await cluster.coordinator("g")
    assert broker.address == Address("node2", 9092)
    assert len(brokers.requests(FindCoordinatorRequest)) == 3


async def test_an_older_server_names_one_coordinator() -> None:
    brokers = Brokers(nodes=(1, 2))
    brokers.served[ApiKey.FIND_COORDINATOR] = (0, 3)
    async with brokers.cluster() as cluster:
        assert (await cluster.coordinator("g")).address == Address("node2", 9092)


async def test_a_group_that_moved_is_asked_for_at_its_new_coordinator() -> None:
    brokers = Brokers(nodes=(1, 2))
    asked = []

    async def ask(broker: Broker) -> str:
        asked.append(broker.address.host)
        if len(asked) == 1:
            brokers.coordinator = 1
            raise Refused(ErrorCode.NOT_COORDINATOR)
        return "done"

    async with brokers.cluster() as cluster:
        assert await cluster.ask_coordinator("g", ask) == "done"
    assert asked == ["node2", "node1"]


async def test_the_next_seed_is_tried_when_one_is_down() -> None:
    brokers = Brokers(nodes=(1, 2))
    brokers.down = {1}
    seeds = [Address("node1", 9092), Address("node2", 9092)]
    async with Cluster(seeds, timeout_s=1, dial=brokers.dial) as cluster:
        assert (await cluster.anyone()).address == seeds[1]


async def test_a_broker_that_the_first_one_told_of_takes_over_from_it() -> None:
    brokers = Brokers({("a", 0): 2}, nodes=(1, 2))
    async with brokers.cluster() as cluster:
        await cluster.metadata()
        brokers.down = {1}
        brokers.wires[0].cut()
        view = await cluster.metadata()
    assert set(view.topics) == {"a"}


async def test_with_no_one_there_every_attempt_is_reported() -> None:
    brokers = Brokers(nodes=(1, 2))
    brokers.down = {1, 2}
    seeds = [Address("node1", 9092), Address("node2", 9092)]
    async with Cluster(seeds, timeout_s=1, dial=brokers.dial) as cluster:
        with pytest.raises(Unreachable) as caught:
            await cluster.anyone()
    assert str(caught.value) == (
        "Cannot connect to node1:9092: connection refused."
        " Cannot connect to node2:9092: connection refused."
    )
