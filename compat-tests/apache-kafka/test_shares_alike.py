"""The same requests of share groups, to Apache Kafka and to the server: the answers are equal.

What is known to differ is in docs/internals/groups-share.md and is not asked here. Nothing waits
without a limit: a connection gives up after `SECONDS_MAX` of silence, and what has to be asked
again is asked a number of times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from behaviours.features import BESIDE
from bench.peers import KafkaPeer, jars
from beside.asking import Broker
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_share_group_offsets as altering
from rockgate.protocol.kafka.messages import delete_groups as deleting
from rockgate.protocol.kafka.messages import delete_share_group_offsets as forgetting
from rockgate.protocol.kafka.messages import describe_groups as describing_classic
from rockgate.protocol.kafka.messages import describe_share_group_offsets as offsets
from rockgate.protocol.kafka.messages import find_coordinator as finding
from rockgate.protocol.kafka.messages import incremental_alter_configs as configuring
from rockgate.protocol.kafka.messages import list_groups as listing
from rockgate.protocol.kafka.messages import offset_commit as committing
from rockgate.protocol.kafka.messages import share_acknowledge as acknowledging
from rockgate.protocol.kafka.messages import share_fetch as fetching
from rockgate.protocol.kafka.messages import share_group_describe as describing
from rockgate.protocol.kafka.messages import share_group_heartbeat as beating
from rockgate.protocol.kafka.records.batch import split
from rockgate.protocol.kafka.records.record import read_records

CLIENT = f"apache-kafka {jars.version('kafka')}"
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.feature("share groups", BESIDE)]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
NOW_MS = int(time.time() * 1000)
READY_SECONDS_MAX = 60.0
"""How long a group may take until its members have partitions, and a partition its records."""
UNTOLD = frozenset(
    {
        *("throttle_time_ms", "client_host", "node_endpoints", "current_leader"),
        *("leader_epoch", "topic_id", "heartbeat_interval_ms", "acquisition_lock_timeout_ms"),
    }
)
"""What differs by itself, or is asked for on its own."""
Batch: TypeAlias = tuple[int, int, list[int]]


def plain(value: Any) -> Any:
    """A response as plain values, lists without their order, records by offset."""
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    names = getattr(type(value), "__slots__", None)
    if not names or isinstance(value, (str, bytes)):
        return value
    found = {name: plain(getattr(value, name)) for name in names if name not in UNTOLD}
    if "records" in found:
        found["records"] = [
            record.offset
            for header, view in split(memoryview(value.records or b""))
            if not header.is_control
            for record in read_records(view)
        ]
    return found


class Group:
    """One broker, with a group and a topic of its own."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = f"g-{name}"
        self.topic = f"t-{name}"
        self.answers: list[Any] = []
        self.epochs: dict[str, int] = {}

    def ask(self, key: ApiKey, version: int, request: Any, *, is_told: bool = True) -> Any:
        answer = self.broker.call(key, version, request, APIS[key].response)
        if is_told:
            self.answers.append(plain(answer))
        return answer

    def create(self, partitions: int = 1) -> None:
        self.broker.create(self.topic, partitions)

    def configure(self, **configs: str) -> None:
        """Set configs of the group, by their names with underscores for dots."""
        said = [
            configuring.AlterableConfig(
                name=f"share.{name.replace('_', '.')}", config_operation=0, value=value
            )
            for name, value in configs.items()
        ]
        resource = configuring.AlterConfigsResource(
            resource_type=32, resource_name=self.name, configs=said
        )
        request = configuring.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=False
        )
        self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

    def produce(self, count: int, *, partition: int = 0) -> None:
        """Append one batch."""
        self.broker.topic = self.topic
        self.broker.produce(partition, [NOW_MS] * count)

    # Members

    def beat(
        self, member: str, epoch: int, *names: str, is_told: bool = True, **said: Any
    ) -> beating.ShareGroupHeartbeatResponse:
        if names:
            said["subscribed_topic_names"] = list(names)
        request = beating.ShareGroupHeartbeatRequest(
            **{"group_id": self.name, "member_id": member, "member_epoch": epoch, **said}
        )
        answer: beating.ShareGroupHeartbeatResponse = self.ask(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, request, is_told=is_told
        )
        return answer

    def join(self, *members: str, partitions: int = 1) -> None:
        """Let members join, and wait until they have all partitions of the topic."""
        epochs = {each: self.beat(each, 0, self.topic, is_told=False) for each in members}
        held: dict[str, int] = {}

        def is_assigned() -> bool:
            for member, last in epochs.items():
                answer = self.beat(member, last.member_epoch, is_told=False)
                assert not answer.error_code, answer
                epochs[member] = answer
                if answer.assignment is not None:
                    topics = answer.assignment.topic_partitions
                    held[member] = sum(len(each.partitions) for each in topics)
            return sum(held.values()) >= partitions and len(held) == len(members)

        wait_until(is_assigned, f"{self.broker.name} assigns all partitions", READY_SECONDS_MAX)
        for member in members:
            self.epochs[member] = 0

    def epoch(self, member: str) -> int:
        """The epoch in which a member of the group is."""
        (group,) = self.describe(is_told=False).groups
        (found,) = (each.member_epoch for each in group.members if each.member_id == member)
        return int(found)

    def describe(self, *, is_told: bool = True) -> describing.ShareGroupDescribeResponse:
        request = describing.ShareGroupDescribeRequest(
            group_ids=[self.name], include_authorized_operations=True
        )
        answer: describing.ShareGroupDescribeResponse = self.ask(
            ApiKey.SHARE_GROUP_DESCRIBE, 1, request, is_told=is_told
        )
        return answer

    # Records

    def fetch(
        self,
        member: str,
        *acks: Batch,
        version: int = 2,
        partitions: dict[bytes, list[int]] | None = None,
        is_told: bool = True,
        **said: Any,
    ) -> fetching.ShareFetchResponse:
        """A ShareFetch in the member's session, of partition 0 and its acknowledgements."""
        asked = partitions or {self.broker.ids[self.topic]: [0]}
        topics = [
            fetching.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    fetching.FetchPartition(
                        partition_index=each,
                        acknowledgement_batches=[
                            fetching.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, types in acks
                        ],
                    )
                    for each in numbers
                ],
            )
            for topic_id, numbers in asked.items()
        ]
        whole = {
            "group_id": self.name,
            "member_id": member,
            "share_session_epoch": self.epochs.get(member, 0),
            "max_wait_ms": 200,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics,
            "forgotten_topics_data": [],
        }
        request = fetching.ShareFetchRequest(**{**whole, **said})
        answer: fetching.ShareFetchResponse = self.ask(
            ApiKey.SHARE_FETCH, version, request, is_told=is_told
        )
        if not answer.error_code:
            self._proceed(member, request.share_session_epoch)
        return answer

    def take(self, member: str, *acks: Batch, **said: Any) -> list[tuple[int, int, int]]:
        """Fetch until something is acquired; the ranges with their counts of deliveries.

        Kafka loads a partition with the first fetch, and answers before it has.
        """
        first = acks
        got: list[tuple[int, int, int]] = []

        def is_there() -> bool:
            nonlocal first
            answer = self.fetch(member, *first, is_told=False, **said)
            first = ()
            assert not answer.error_code, answer
            got.extend(
                (each.first_offset, each.last_offset, each.delivery_count)
                for topic in answer.responses
                for data in topic.partitions
                for each in data.acquired_records
            )
            return bool(got)

        wait_until(is_there, f"{self.broker.name} has records", READY_SECONDS_MAX)
        self.answers.append(got)
        return got

    def nothing(self, member: str, **said: Any) -> None:
        """Fetch, and get no records."""
        answer = self.fetch(member, is_told=False, **said)
        acquired = [
            plain(each)
            for topic in answer.responses
            for data in topic.partitions
            for each in data.acquired_records
        ]
        self.answers.append((answer.error_code, acquired))

    def acknowledge(
        self,
        member: str,
        *acks: Batch,
        partitions: dict[bytes, list[int]] | None = None,
        version: int = 2,
        **said: Any,
    ) -> None:
        asked = partitions or {self.broker.ids[self.topic]: [0]}
        topics = [
            acknowledging.AcknowledgeTopic(
                topic_id=topic_id,
                partitions=[
                    acknowledging.AcknowledgePartition(
                        partition_index=each,
                        acknowledgement_batches=[
                            acknowledging.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, types in acks
                        ],
                    )
                    for each in numbers
                ],
            )
            for topic_id, numbers in asked.items()
        ]
        whole = {
            "group_id": self.name,
            "member_id": member,
            "share_session_epoch": self.epochs.get(member, 0),
            "topics": topics,
        }
        request = acknowledging.ShareAcknowledgeRequest(**{**whole, **said})
        answer = self.ask(ApiKey.SHARE_ACKNOWLEDGE, version, request)
        if not answer.error_code:
            self._proceed(member, request.share_session_epoch)

    def _proceed(self, member: str, epoch: int) -> None:
        self.epochs[member] = 0 if epoch == -1 else epoch + 1

    # Administering

    def starts(self, *partitions: int, topic: str = "", version: int = 1) -> None:
        asked = offsets.DescribeShareGroupOffsetsRequestTopic(
            topic_name=topic or self.topic, partitions=[*partitions]
        )
        group = offsets.DescribeShareGroupOffsetsRequestGroup(
            group_id=self.name, topics=[asked] if partitions else None
        )
        request = offsets.DescribeShareGroupOffsetsRequest(groups=[group])
        self.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, request)

    def alter(self, partition: int, offset: int, topic: str = "", group: str = "") -> None:
        part = altering.AlterShareGroupOffsetsRequestPartition(
            partition_index=partition, start_offset=offset
        )
        asked = altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=topic or self.topic, partitions=[part]
        )
        request = altering.AlterShareGroupOffsetsRequest(
            group_id=group or self.name, topics=[asked]
        )
        self.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)

    def forget(self, topic: str = "", group: str = "") -> None:
        asked = forgetting.DeleteShareGroupOffsetsRequestTopic(topic_name=topic or self.topic)
        request = forgetting.DeleteShareGroupOffsetsRequest(
            group_id=group or self.name, topics=[asked]
        )
        self.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, request)

    def delete(self) -> None:
        request = deleting.DeleteGroupsRequest(groups_names=[self.name])
        self.ask(ApiKey.DELETE_GROUPS, 2, request)


Scenario: TypeAlias = Callable[[Group], None]


def heartbeats(group: Group) -> None:
    group.create()
    group.describe()
    group.beat("a", 3)
    group.beat("a", -1)
    group.beat("", 0, group.topic)
    group.beat("a", 0, group.topic, group_id="")
    group.beat("a", 0)
    group.beat("a", 0, subscribed_topic_names=[])
    group.beat("a", 0, group.topic, rack_id="")
    group.beat("a", -2)
    group.join("a")
    epoch = group.epoch("a")
    group.beat("x", epoch)
    group.beat("x", -1)
    group.beat("a", epoch + 5)
    group.beat("a", epoch)
    group.beat("a", epoch, group.topic)
    group.beat("a", 0, group.topic)
    group.describe()
    group.ask(
        ApiKey.DESCRIBE_GROUPS, 6, describing_classic.DescribeGroupsRequest(groups=[group.name])
    )
    part = committing.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1
    )
    topic = committing.OffsetCommitRequestTopic(name=group.topic, partitions=[part])
    group.ask(
        ApiKey.OFFSET_COMMIT,
        9,
        committing.OffsetCommitRequest(
            group_id=group.name,
            member_id="",
            generation_id_or_member_epoch=-1,
            topics=[topic],
        ),
    )
    group.delete()
    group.beat("a", -1)
    group.beat("a", -1)
    group.beat("a", epoch)


def listed(group: Group) -> None:
    group.create()
    group.join("a")
    for types, states in (
        (["share"], []),
        (["Share"], ["Stable"]),
        ([], ["STABLE"]),
        (["classic"], []),
    ):
        request = listing.ListGroupsRequest(types_filter=types, states_filter=states)
        answer = group.ask(ApiKey.LIST_GROUPS, 5, request, is_told=False)
        group.answers.append([plain(each) for each in answer.groups if each.group_id == group.name])


def sessions(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a", "b")
    group.produce(4)
    group.fetch("a", share_session_epoch=3)
    group.fetch("a", share_session_epoch=-1)
    group.acknowledge("a", (0, 0, [ACCEPT]), share_session_epoch=3)
    group.acknowledge("a", (0, 0, [ACCEPT]), share_session_epoch=0)
    group.acknowledge("a", (0, 0, [ACCEPT]), share_session_epoch=-1)
    group.fetch("a", (0, 0, [ACCEPT]), share_session_epoch=0)
    group.fetch("a", group_id="")
    group.fetch("a", group_id=None)
    group.fetch("", member_id="")
    group.fetch("a", member_id=None)
    group.acknowledge("a", (0, 0, [ACCEPT]), group_id=None)
    group.take("a")
    group.fetch("a", share_session_epoch=9)
    group.acknowledge("a", (0, 0, [ACCEPT]), share_session_epoch=9)
    group.acknowledge("a", (0, 0, [ACCEPT]))
    group.fetch("a", (1, 1, [ACCEPT]))
    group.acknowledge("a", (2, 2, [ACCEPT]), share_session_epoch=-1)
    group.take("b")
    group.fetch("b", share_session_epoch=-1)
    group.take("a")
    group.acknowledge("a", (3, 3, [ACCEPT]))


def missing(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a")
    group.produce(2)
    group.take("a")
    here = group.broker.ids[group.topic]
    group.fetch("a", partitions={here: [7], b"?" * 16: [0]})
    group.acknowledge("a", (0, 0, [ACCEPT]), partitions={here: [7]})
    group.acknowledge("a", (0, 0, [ACCEPT]), partitions={b"?" * 16: [0]})
    group.acknowledge("a", (0, 0, [ACCEPT]))


def acknowledgements(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a", "b")
    group.produce(5)
    group.produce(5)
    group.take("a")
    for batches in (
        [(1, 0, [ACCEPT])],
        [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])],
        [(2, 2, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 0, [5])],
        [(0, 0, [-1])],
        [(0, 0, [RENEW])],
        [(0, 30, [ACCEPT])],
        [(40, 41, [ACCEPT])],
    ):
        group.acknowledge("a", *batches)
    group.acknowledge("a", (0, 0, [ACCEPT]), (2, 2, [REJECT]), (3, 3, [GAP]))
    group.acknowledge("a", (2, 2, [ACCEPT]))
    group.acknowledge("a", (0, 0, [ACCEPT]))
    group.acknowledge("a", (1, 1, [RELEASE]), (4, 6, [ACCEPT, RELEASE, ACCEPT]))
    group.starts(0)
    group.take("b")
    group.acknowledge("a", (1, 1, [ACCEPT]))
    group.acknowledge("b", (1, 1, [ACCEPT]))
    group.starts(0)
    group.acknowledge("a", (7, 7, [ACCEPT]), (8, 8, [ACCEPT]), (9, 9, [RELEASE]))
    group.acknowledge("b", (5, 5, [ACCEPT]))
    group.starts(0)
    group.take("b")


def deliveries(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest", delivery_count_limit="3")
    group.join("a")
    group.produce(1)
    for _ in range(3):
        group.take("a")
        group.acknowledge("a", (0, 0, [RELEASE]))
    group.nothing("a")
    group.starts(0)
    group.produce(1)
    group.take("a")


def throttled(group: Group) -> None:
    """Records that fail often are delivered in ever smaller parts."""
    group.create()
    group.configure(auto_offset_reset="earliest", delivery_count_limit="5")
    group.join("a")
    group.produce(8)
    for _ in range(12):
        for first, last, _count in group.take("a"):
            group.acknowledge("a", (first, last, [RELEASE]))
    group.starts(0)


def modes(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a", "b")
    group.produce(10)
    group.produce(10)
    group.take("a", max_records=3, share_acquire_mode=1)
    group.take("b", max_records=3, share_acquire_mode=0)
    group.take("a", max_records=15, share_acquire_mode=0)
    group.nothing("b")
    group.produce(4)
    group.take("b", max_records=2, batch_size=1, share_acquire_mode=0)


def parts(group: Group) -> None:
    """`batch_size` cuts what is acquired into ranges."""
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a")
    for _ in range(3):
        group.produce(2)
    group.take("a", batch_size=2)
    group.acknowledge("a", (0, 5, [ACCEPT]))
    group.produce(7)
    group.take("a", batch_size=3)


def locks(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest", partition_max_record_locks="100")
    group.join("a")
    for _ in range(12):
        group.produce(10)
    group.take("a", max_records=1_000)
    group.nothing("a")
    group.acknowledge("a", (0, 19, [ACCEPT]))
    group.take("a", max_records=1_000)


def renewals(group: Group) -> None:
    group.create()
    group.configure(auto_offset_reset="earliest")
    group.join("a")
    group.produce(3)
    group.take("a")
    group.acknowledge("a", (0, 0, [RENEW]), is_renew_ack=True)
    group.acknowledge("a", (0, 0, [RENEW]))
    group.acknowledge("a", (0, 0, [RENEW]), version=1)
    quiet = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    group.fetch("a", (0, 1, [RENEW]), is_renew_ack=True, **quiet)
    group.fetch("a", (0, 1, [RENEW]), is_renew_ack=True, max_wait_ms=0)
    group.acknowledge("a", (0, 1, [RENEW, ACCEPT]), is_renew_ack=True)
    group.acknowledge("a", (1, 1, [RENEW]), is_renew_ack=True)
    group.configure(renew_acknowledge_enable="false")
    group.acknowledge("a", (0, 0, [RENEW]), is_renew_ack=True)
    group.acknowledge("a", (0, 0, [ACCEPT]), (2, 2, [ACCEPT]))
    group.starts(0)


def beginnings(group: Group) -> None:
    group.create()
    group.produce(3)
    group.join("a")
    group.nothing("a")
    time_max = time.monotonic() + READY_SECONDS_MAX

    def has_begun() -> bool:
        group.fetch("a", is_told=False)
        request = offsets.DescribeShareGroupOffsetsRequest(
            groups=[offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group.name, topics=None)]
        )
        answer = group.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request, is_told=False)
        topics = answer.groups[0].topics
        return bool(topics) and topics[0].partitions[0].start_offset == 3

    wait_until(has_begun, "the group is at the end", max(1.0, time_max - time.monotonic()))
    group.produce(2)
    group.take("a")
    group.starts(0)


def administering(group: Group) -> None:
    group.create(2)
    group.starts()
    group.starts(0)
    group.alter(0, 1)
    group.forget()
    group.alter(0, 1, group="")
    group.configure(auto_offset_reset="earliest")
    group.join("a", partitions=2)
    group.produce(5)
    group.starts(0, 1, 9)
    group.starts(0, topic="no-such-topic")
    group.take("a")
    group.acknowledge("a", (0, 1, [ACCEPT]))
    group.starts(0)
    group.starts(0, version=0)
    group.alter(0, 1)
    group.forget()
    group.delete()
    group.acknowledge("a", (2, 2, [ACCEPT]), share_session_epoch=-1)
    group.beat("a", -1)
    group.alter(0, 4)
    group.alter(7, 4)
    group.alter(0, 4, topic="no-such-topic")
    group.starts(0)
    group.join("b", partitions=2)
    group.take("b")
    group.acknowledge("b", (4, 4, [ACCEPT]), share_session_epoch=-1)
    group.beat("b", -1)
    group.forget(topic="no-such-topic")
    group.forget()
    group.starts(0)
    group.delete()
    group.describe()
    group.delete()


SCENARIOS: tuple[Scenario, ...] = (
    heartbeats,
    listed,
    sessions,
    missing,
    acknowledgements,
    deliveries,
    throttled,
    modes,
    parts,
    locks,
    renewals,
    beginnings,
    administering,
)


def has_coordinator(broker: Broker) -> bool:
    """Kafka creates the topics of its coordinators when one is looked for."""
    names = [f"g-{each.__name__}" for each in SCENARIOS]
    request = finding.FindCoordinatorRequest(key_type=0, coordinator_keys=names)
    Group(broker, "nothing").ask(ApiKey.FIND_COORDINATOR, 4, request)
    return all(
        Group(broker, each.__name__).describe().groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        for each in SCENARIOS
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    with (
        KafkaPeer() as kafka,
        RunningServer(tmp_path_factory.mktemp("alike")) as server,
    ):
        found = [Broker("kafka", kafka.address), Broker("rockgate", server.address("kafka"))]
        for broker in found:
            wait_until(
                lambda broker=broker: has_coordinator(broker),
                f"{broker.name} has coordinators",
                READY_SECONDS_MAX,
            )
        yield found
        for broker in found:
            broker.close()
        server.stop_cleanly()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_the_same_requests_have_the_same_answers(brokers: list[Broker], scenario: Scenario) -> None:
    groups = [Group(broker, scenario.__name__) for broker in brokers]
    for group in groups:
        scenario(group)
    kafka, server = (group.answers for group in groups)
    for at, (theirs, ours) in enumerate(zip(kafka, server, strict=True)):
        assert ours == theirs, f"answer {at} of {len(kafka)}"
