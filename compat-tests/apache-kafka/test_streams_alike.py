"""The same heartbeats of streams groups, to Apache Kafka and to the server: the answers are equal.

The messages of errors and statuses are compared too: clients log them, and tools search for them.
What is known to differ is in docs/internals/groups-streams.md and is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from bench.peers import KafkaPeer, jars
from beside.asking import Broker
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import delete_groups as deleting
from rockgate.protocol.kafka.messages import find_coordinator as finding
from rockgate.protocol.kafka.messages import list_groups as listing
from rockgate.protocol.kafka.messages import offset_commit as committing
from rockgate.protocol.kafka.messages import streams_group_describe as describing
from rockgate.protocol.kafka.messages import streams_group_heartbeat as beating

CLIENT = f"apache-kafka {jars.version('kafka')}"
pytestmark = [pytest.mark.java, pytest.mark.long]

TOPIC = "alike"
PARTITIONS = 4
GROUPS = [f"g-{each}" for each in ("refusals", "two_members", "topologies", "missing")]
GROUPS += ["g-end_points", "g-internal"]
_UNTOLD = frozenset({"throttle_time_ms", "client_host"})
Tasks: TypeAlias = dict[str, list[int]]


def plain(value: Any) -> Any:
    """A response as plain values, lists without their order."""
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    names = getattr(type(value), "__slots__", None)
    if not names or isinstance(value, (str, bytes)):
        return value
    return {name: plain(getattr(value, name)) for name in names if name not in _UNTOLD}


class Member:
    """One broker and a group of its own, with what a client would send."""

    def __init__(self, broker: Broker, group: str) -> None:
        self.broker = broker
        self.group = group
        self.answers: list[Any] = []

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        answer = self.broker.call(key, version, request, APIS[key].response)
        self.answers.append(plain(answer))
        return answer

    def beat(
        self, member: str, epoch: int, active: Tasks | None = None, **said: Any
    ) -> beating.StreamsGroupHeartbeatResponse:
        if active is not None:
            said = {"standby_tasks": [], "warmup_tasks": [], **said}
            said["active_tasks"] = [
                beating.TaskIds(subtopology_id=each, partitions=parts)
                for each, parts in active.items()
            ]
        request = beating.StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=member, member_epoch=epoch, **said
        )
        answer: beating.StreamsGroupHeartbeatResponse = self.ask(
            ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request
        )
        return answer

    def join(
        self, member: str, *subtopologies: beating.Subtopology, **said: Any
    ) -> beating.StreamsGroupHeartbeatResponse:
        topology = beating.Topology(epoch=said.pop("epoch", 0), subtopologies=[*subtopologies])
        whole = {"process_id": member, "rebalance_timeout_ms": 60_000, "topology": topology}
        return self.beat(member, 0, {}, **{**whole, **said})

    def describe(self) -> describing.DescribedGroup:
        request = describing.StreamsGroupDescribeRequest(
            group_ids=[self.group], include_authorized_operations=True
        )
        answer = self.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request)
        group: describing.DescribedGroup = answer.groups[0]
        return group

    def commit(self, member: str, epoch: int, partition: int = 0) -> int:
        """The code of an offset's commit."""
        part = committing.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=1, committed_leader_epoch=-1
        )
        request = committing.OffsetCommitRequest(
            group_id=self.group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[committing.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])],
        )
        answer = self.ask(ApiKey.OFFSET_COMMIT, 9, request)
        code: int = answer.topics[0].partitions[0].error_code
        return code


def reading(id_: str = "0", *topics: str, **more: Any) -> beating.Subtopology:
    return beating.Subtopology(subtopology_id=id_, source_topics=[*topics] or [TOPIC], **more)


def counting(group: str) -> tuple[beating.Subtopology, beating.Subtopology]:
    compact = [beating.KeyValue(key="cleanup.policy", value="compact")]
    return (
        reading("0", repartition_sink_topics=[f"{group}-r"]),
        beating.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[beating.TopicInfo(name=f"{group}-r")],
            state_changelog_topics=[beating.TopicInfo(name=f"{group}-c", topic_configs=compact)],
        ),
    )


Scenario: TypeAlias = Callable[[Member], None]


def refusals(member: Member) -> None:
    one = reading()
    member.beat("a", 3)
    member.beat("a", -1)
    member.join("", one)
    member.join("a", one, rack_id="")
    member.join("a", one, instance_id="")
    member.join("a", one, instance_id="i")
    member.join("a", one, rebalance_timeout_ms=-1)
    member.join("a", one, topology=None)
    member.join("a", one, task_offsets=[])
    member.beat("a", 0, {"0": [1]}, rebalance_timeout_ms=1, topology=beating.Topology())
    member.beat("a", -2)
    member.beat("a", -3)
    member.beat("a", -2, instance_id="i")
    member.beat("a", 1, topology=beating.Topology())
    member.beat("a", 1, {}, standby_tasks=None)
    member.join("a", reading(source_topic_regex=["x.*"]))
    member.join("a", reading("0", "__consumer_offsets"))
    member.join("a", reading("0", "not valid"))
    changelog = beating.TopicInfo(name="c", partitions=3)
    member.join("a", reading(state_changelog_topics=[changelog]))
    member.describe()


def two_members(member: Member) -> None:
    one = reading()
    member.join("a", one)
    member.join("b", one)
    member.beat("a", 2)
    member.beat("b", 3)
    member.describe()
    member.beat("a", 2, {"0": [0, 1]})
    member.beat("b", 3)
    member.beat("b", 4)
    member.beat("b", 1)
    member.beat("x", 3)
    member.beat("a", 3, {"0": [9]})
    member.beat("a", 3, {"7": [0]})
    member.commit("b", 3)
    member.commit("b", 4)
    member.commit("b", 2)
    member.commit("x", 3)
    member.commit("", -1)
    member.beat("b", -1)
    member.beat("a", 3)
    member.describe()
    member.beat("b", -1)
    member.beat("a", -1)
    member.describe()
    member.beat("a", 3)
    member.commit("", -1)
    member.ask(ApiKey.DELETE_GROUPS, 2, deleting.DeleteGroupsRequest(groups_names=[member.group]))


def topologies(member: Member) -> None:
    member.join("a", reading(), epoch=2)
    member.join("b", reading(), epoch=1)
    member.join("c", reading(), epoch=3)
    member.join("c", reading("1"), epoch=2)
    member.join("a", reading(), epoch=2, shutdown_application=True)
    member.beat("b", 3)
    member.describe()


def missing(member: Member) -> None:
    member.join("a", reading("0", "m4", "m2", "m3", "m1"))
    member.describe()
    member.beat("a", 2)


def end_points(member: Member) -> None:
    one = reading()
    here, there = (beating.Endpoint(host=f"h{at}", port=at) for at in (1, 2))
    member.join("a", one, user_endpoint=here)
    member.beat("a", 2)
    member.beat("a", 2, endpoint_information_epoch=9)
    member.join("b", one, user_endpoint=there, client_tags=[beating.KeyValue(key="k", value="v")])
    member.beat("a", 2)
    member.beat("a", 2, {"0": [0, 1]})
    member.beat("b", 3)
    member.describe()


def has_coordinator(broker: Broker) -> bool:
    """Kafka creates the topic of its coordinators when one is looked for."""
    member = Member(broker, "g-nothing")
    member.ask(
        ApiKey.FIND_COORDINATOR,
        4,
        finding.FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS),
    )
    return all(
        Member(broker, group).describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
        for group in GROUPS
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    settings = {
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.assignment.interval.ms": "0",
    }
    pairs = [f"{name}={value}" for name, value in settings.items()]
    with (
        KafkaPeer(settings=settings) as kafka,
        RunningServer(tmp_path_factory.mktemp("alike"), settings=pairs) as server,
    ):
        found = [Broker("kafka", kafka.address), Broker("rockgate", server.address("kafka"))]
        for broker in found:
            broker.create(TOPIC, PARTITIONS)
            wait_until(lambda broker=broker: has_coordinator(broker), "there is a coordinator")
        yield found
        for broker in found:
            broker.close()
        server.stop_cleanly()


@pytest.mark.parametrize(
    "scenario", [refusals, two_members, topologies, missing, end_points], ids=lambda s: s.__name__
)
def test_the_same_heartbeats_have_the_same_answers(
    brokers: list[Broker], scenario: Scenario
) -> None:
    members = [Member(broker, f"g-{scenario.__name__}") for broker in brokers]
    for member in members:
        scenario(member)
    kafka, server = (member.answers for member in members)
    for at, (theirs, ours) in enumerate(zip(kafka, server, strict=True)):
        assert ours == theirs, f"answer {at} of {len(kafka)}"


def test_internal_topics_are_created_and_described_alike(brokers: list[Broker]) -> None:
    described = []
    for broker in brokers:
        member = Member(broker, "g-internal")
        said = counting(member.group)
        assert member.join("a", *said).error_code == 0
        assert plain(member.answers[0])["status"] == [
            {
                "status_code": 3,
                "status_detail": "Internal topics are missing: g-internal-c, g-internal-r",
            }
        ] or "g-internal-r, g-internal-c" in str(member.answers[0])

        def is_stable(member: Member = member) -> bool:
            member.join("a", *counting(member.group))
            return member.describe().group_state == "Stable"

        wait_until(is_stable, "the group has its topics")
        group = plain(member.describe())
        del group["group_epoch"], group["assignment_epoch"], group["members"][0]["member_epoch"]
        described.append(group)
        groups = member.ask(
            ApiKey.LIST_GROUPS, 5, listing.ListGroupsRequest(types_filter=["Streams"])
        )
        assert [
            each.group_type.lower() for each in groups.groups if each.group_id == member.group
        ] == ["streams"]
    kafka, server = described
    assert server == kafka
