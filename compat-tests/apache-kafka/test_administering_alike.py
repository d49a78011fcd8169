"""The same admin questions, asked of Apache Kafka and of the server: the answers are equal.

Messages to people are worded differently and are not compared, nor is what only one node, one disk
or one log can say. What is known to differ otherwise is in FINDINGS.md and is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bench.peers import KafkaPeer, jars
from beside.asking import Broker
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_client_quotas as quotas
from rockgate.protocol.kafka.messages import alter_partition_reassignments as moving
from rockgate.protocol.kafka.messages import alter_replica_log_dirs as placing
from rockgate.protocol.kafka.messages import api_versions as naming
from rockgate.protocol.kafka.messages import consumer_group_describe as consumers
from rockgate.protocol.kafka.messages import describe_client_quotas as describing
from rockgate.protocol.kafka.messages import describe_groups as describing_groups
from rockgate.protocol.kafka.messages import describe_log_dirs as measuring
from rockgate.protocol.kafka.messages import describe_producers as producing
from rockgate.protocol.kafka.messages import describe_quorum as voting
from rockgate.protocol.kafka.messages import elect_leaders as electing
from rockgate.protocol.kafka.messages import find_coordinator as finding
from rockgate.protocol.kafka.messages import incremental_alter_configs as altering
from rockgate.protocol.kafka.messages import list_config_resources as listing
from rockgate.protocol.kafka.messages import list_partition_reassignments as moves
from rockgate.protocol.kafka.messages import share_group_describe as shares
from rockgate.protocol.kafka.messages import streams_group_describe as streams
from rockgate.protocol.kafka.messages import update_features as features
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

CLIENT = f"apache-kafka {jars.version('kafka')}"
pytestmark = [pytest.mark.java, pytest.mark.long]

TOPIC, NONE, WRONG = "admin", "none", "no name!"
Ask = Callable[[Broker], Any]
_UNTOLD = frozenset({"error_message", "throttle_time_ms", "documentation"})


def plain(value: Any) -> Any:
    """A response as plain values, lists without their order, without what is not compared."""
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    names = getattr(type(value), "__slots__", None)
    if not names or isinstance(value, (str, bytes)):
        return value
    return {name: plain(getattr(value, name)) for name in names if name not in _UNTOLD}


class Both:
    """Two brokers with the same topic."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.brokers = brokers
        for broker in brokers:
            broker.create(TOPIC, 2)

    def same(self, key: ApiKey, version: int, request: Any) -> Any:
        """Ask both; the answer, which is the same."""
        response = APIS[key].response
        kafka, server = (
            plain(broker.call(key, version, request, response)) for broker in self.brokers
        )
        assert server == kafka
        return server


@pytest.fixture(scope="module")
def both(server: RunningServer) -> Iterator[Both]:
    with KafkaPeer() as kafka:
        brokers = [Broker("kafka", kafka.address), Broker("rockgate", server.address("kafka"))]
        yield Both(brokers)
        brokers[1].delete(TOPIC)
        for broker in brokers:
            broker.close()


@pytest.mark.parametrize("types", [[4], [8], [16], [32], [0], [99], [2, 99]])
def test_config_resources(both: Both, types: list[int]) -> None:
    request = listing.ListConfigResourcesRequest(resource_types=types)
    both.same(ApiKey.LIST_CONFIG_RESOURCES, 1, request)
    both.same(ApiKey.LIST_CONFIG_RESOURCES, 0, listing.ListConfigResourcesRequest())


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("kind", [0, 1, 2, -1])
@pytest.mark.parametrize("topics", [[], [(TOPIC, [0, 9])], [(NONE, [0])], [(WRONG, [0])]])
def test_elections(
    both: Both, version: int, kind: int, topics: list[tuple[str, list[int]]]
) -> None:
    asked = [electing.TopicPartitions(topic=name, partitions=at) for name, at in topics]
    request = electing.ElectLeadersRequest(
        election_type=kind if version else 0, topic_partitions=asked
    )
    both.same(ApiKey.ELECT_LEADERS, version, request)


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("replicas", [None, [], [1], [99], [1, 99], [1, 1], [-1]])
@pytest.mark.parametrize(("topic", "index"), [(TOPIC, 0), (TOPIC, 9), (NONE, 0)])
def test_moves_of_partitions(
    both: Both, version: int, replicas: list[int] | None, topic: str, index: int
) -> None:
    partition = moving.ReassignablePartition(partition_index=index, replicas=replicas)
    request = moving.AlterPartitionReassignmentsRequest(
        topics=[moving.ReassignableTopic(name=topic, partitions=[partition])]
    )
    both.same(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)


@pytest.mark.parametrize("topics", [None, [], [(TOPIC, [0, 9])], [(NONE, [0])]])
def test_moves_under_way(both: Both, topics: list[tuple[str, list[int]]] | None) -> None:
    asked = (
        None
        if topics is None
        else [
            moves.ListPartitionReassignmentsTopics(name=name, partition_indexes=at)
            for name, at in topics
        ]
    )
    request = moves.ListPartitionReassignmentsRequest(topics=asked)
    both.same(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("path", ["/none", "relative", ""])
def test_other_directories(both: Both, version: int, path: str) -> None:
    topics = [placing.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0, 9])]
    request = placing.AlterReplicaLogDirsRequest(
        dirs=[placing.AlterReplicaLogDir(path=path, topics=topics)]
    )
    both.same(ApiKey.ALTER_REPLICA_LOG_DIRS, version, request)


@pytest.mark.parametrize("version", range(1, 6))
def test_sizes_of_what_is_empty_or_unknown(both: Both, version: int) -> None:
    for topics in ([], [(TOPIC, [0, 9])], [(NONE, [0])]):
        asked = [measuring.DescribableLogDirTopic(topic=name, partitions=at) for name, at in topics]
        request = measuring.DescribeLogDirsRequest(topics=asked)
        found = []
        for broker in both.brokers:
            answer = broker.call(
                ApiKey.DESCRIBE_LOG_DIRS, version, request, measuring.DescribeLogDirsResponse
            )
            found.append(plain([result.topics for result in answer.results]))
        assert found[0] == found[1]


@pytest.mark.parametrize("topics", [[], [(TOPIC, [0, 1])], [(NONE, [0])], [(WRONG, [0])]])
def test_producers(both: Both, topics: list[tuple[str, list[int]]]) -> None:
    asked = [producing.TopicRequest(name=name, partition_indexes=at) for name, at in topics]
    both.same(ApiKey.DESCRIBE_PRODUCERS, 0, producing.DescribeProducersRequest(topics=asked))


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "topics",
    [[], [("__cluster_metadata", [0, 1])], [("__cluster_metadata", [1])], [("other", [0])]],
)
def test_quorums_that_are_not_there(
    both: Both, version: int, topics: list[tuple[str, list[int]]]
) -> None:
    asked = [
        voting.TopicData(
            topic_name=name, partitions=[voting.PartitionData(partition_index=at) for at in each]
        )
        for name, each in topics
    ]
    both.same(ApiKey.DESCRIBE_QUORUM, version, voting.DescribeQuorumRequest(topics=asked))


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(("feature", "level"), [("none", 0), ("none", 1), ("none", -1), ("", 1)])
def test_features_that_are_not_there(both: Both, version: int, feature: str, level: int) -> None:
    update = features.FeatureUpdateKey(feature=feature, max_version_level=level)
    both.same(
        ApiKey.UPDATE_FEATURES, version, features.UpdateFeaturesRequest(feature_updates=[update])
    )
    both.same(ApiKey.UPDATE_FEATURES, version, features.UpdateFeaturesRequest())


_GROUPS = (
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 1, consumers.ConsumerGroupDescribeRequest(group_ids=["g"])),
    (ApiKey.SHARE_GROUP_DESCRIBE, 1, shares.ShareGroupDescribeRequest(group_ids=["g"])),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0, streams.StreamsGroupDescribeRequest(group_ids=["g"])),
)


def coordinates(broker: Broker) -> bool:
    """Whether a broker has begun to coordinate the group."""
    request = finding.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    broker._call(ApiKey.FIND_COORDINATOR, 4, request, finding.FindCoordinatorResponse)
    group = describing_groups.DescribeGroupsRequest(groups=["g"])
    answer = broker._call(
        ApiKey.DESCRIBE_GROUPS, 5, group, describing_groups.DescribeGroupsResponse
    )
    return not answer.groups[0].error_code


def finalized(broker: Broker) -> dict[str, int]:
    """The levels of features, of which Kafka's broker hears from the controller."""
    request = naming.ApiVersionsRequest(client_software_name="beside", client_software_version="1")
    answer = broker._call(ApiKey.API_VERSIONS, 4, request, naming.ApiVersionsResponse)
    return {each.name: each.max_version_level for each in answer.finalized_features}


@pytest.mark.parametrize(
    ("feature", "low", "high"),
    [
        ("transaction.version", 1, 2),
        ("transaction.version", 0, 2),
        ("group.version", 0, 1),
        ("share.version", 0, 1),
        ("streams.version", 0, 1),
        ("eligible.leader.replicas.version", 0, 1),
        ("metadata.version", 29, 30),
        ("metadata.version", 6, 30),
        ("none", 0, 1),
    ],
)
def test_levels_of_features(both: Both, feature: str, low: int, high: int) -> None:
    def update(level: int, type_: int, *, dry: bool = False, version: int = 1) -> Any:
        change = features.FeatureUpdateKey(
            feature=feature, max_version_level=level, upgrade_type=type_
        )
        request = features.UpdateFeaturesRequest(feature_updates=[change], validate_only=dry)
        return both.same(ApiKey.UPDATE_FEATURES, version, request)

    for broker in both.brokers:
        # Until its offsets topic is there, a broker of Kafka coordinates nothing.
        wait_until(lambda broker=broker: coordinates(broker), "the coordinator is there")
    for type_ in range(5):
        update(low, type_, dry=True)
        update(high, type_, dry=True)
        update(high + 1, type_)
        update(-1, type_)
    update(low, 1)
    update(low, 1, version=0)
    for type_ in (2, 3, 1):
        update(low, type_, version=2)
        wait_until(
            lambda: finalized(both.brokers[0]) == finalized(both.brokers[1]), "the same levels"
        )
        for key, version, request in _GROUPS:
            both.same(key, version, request)
        update(high, type_)
    update(high, 1)


def test_group_configs(both: Both) -> None:
    def alter(name: str, config: str, operation: int, value: str | None) -> Any:
        change = altering.AlterableConfig(name=config, config_operation=operation, value=value)
        resource = altering.AlterConfigsResource(
            resource_type=32, resource_name=name, configs=[change]
        )
        request = altering.IncrementalAlterConfigsRequest(resources=[resource])
        return both.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

    def describe(*keys: str) -> Any:
        resource = DescribeConfigsResource(
            resource_type=32, resource_name="g", configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        return both.same(ApiKey.DESCRIBE_CONFIGS, 4, request)

    session = "consumer.session.timeout.ms"
    describe()
    alter("g", session, 0, "50000")
    alter("g", session, 0, "1")
    alter("g", "unknown", 0, "1")
    alter("g", "unknown", 1, None)
    alter("", session, 0, "50000")
    alter("g", session, 2, "3")
    describe()
    describe(session, "unknown")
    both.same(
        ApiKey.LIST_CONFIG_RESOURCES, 1, listing.ListConfigResourcesRequest(resource_types=[32])
    )
    alter("g", session, 1, None)
    describe()
    both.same(
        ApiKey.LIST_CONFIG_RESOURCES, 1, listing.ListConfigResourcesRequest(resource_types=[32])
    )


def test_quotas(both: Both) -> None:
    def alter(parts: list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> None:
        entry = quotas.EntryData(
            entity=[
                quotas.EntityData(entity_type=type_, entity_name=name) for type_, name in parts
            ],
            ops=[
                quotas.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in ops
            ],
        )
        both.same(ApiKey.ALTER_CLIENT_QUOTAS, 1, quotas.AlterClientQuotasRequest(entries=[entry]))

    def describe(*parts: tuple[str, int, str | None], strict: bool = False) -> None:
        components = [
            describing.ComponentData(entity_type=type_, match_type=how, match=name)
            for type_, how, name in parts
        ]
        request = describing.DescribeClientQuotasRequest(components=components, strict=strict)
        for version in (0, 1):
            both.same(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, request)

    rate, far = "producer_byte_rate", 1e12
    describe()
    alter([("client-id", "c1")], (rate, far), ("consumer_byte_rate", far))
    alter([("client-id", None)], (rate, far))
    alter([("client-id", "c1"), ("user", "u1")], (rate, far))
    alter([("client-id", None), ("user", "u1")], ("controller_mutation_rate", 1e6))
    alter([("user", "u1")], ("request_percentage", 1e4))
    alter([("user", None)], ("request_percentage", 1e4))
    alter([("ip", "10.1.2.3")], ("connection_creation_rate", 1e6))
    alter([("ip", None)], ("connection_creation_rate", 1e6))
    alter([("client-id", "c1")], (rate, 1.5))
    alter([("client-id", "c1")], (rate, -1.0))
    alter([("client-id", "c1")], ("unknown", 1.0))
    alter([("client-id", "c1")], ("unknown", None))
    alter([("ip", "10.1.2.3")], (rate, 1.0))
    alter([("client-id", "c1")], ("connection_creation_rate", 1.0))
    alter([("client-id", "")], (rate, far))
    alter([], (rate, far))
    alter([("nobody", "x")], (rate, far))
    alter([("ip", "not an address")], ("connection_creation_rate", 1.0))
    for strict in (False, True):
        describe(strict=strict)
        for type_ in ("client-id", "user", "ip"):
            describe((type_, 2, None), strict=strict)
            describe((type_, 1, None), strict=strict)
        describe(("client-id", 0, "c1"), strict=strict)
        describe(("user", 0, "u1"), ("client-id", 2, None), strict=strict)
    describe(("nobody", 2, None))
    describe(("", 2, None))
    describe(("client-id", 9, None))
    describe(("client-id", 0, None))
    describe(("client-id", 1, "x"))
    describe(("client-id", 2, "x"))
    describe(("ip", 2, None), ("user", 2, None))
    for parts in (
        [("client-id", "c1")],
        [("client-id", None)],
        [("client-id", "c1"), ("user", "u1")],
    ):
        alter(parts, (rate, None), ("consumer_byte_rate", None))
    alter([("client-id", None), ("user", "u1")], ("controller_mutation_rate", None))
    alter([("user", "u1")], ("request_percentage", None))
    alter([("user", None)], ("request_percentage", None))
    alter([("ip", "10.1.2.3")], ("connection_creation_rate", None))
    alter([("ip", None)], ("connection_creation_rate", None))
    describe()


@pytest.mark.parametrize("size", [5_000, 12_000, 30_000])
def test_a_producer_beyond_its_quota_has_to_wait_as_long(both: Both, size: int) -> None:
    entity = [quotas.EntityData(entity_type="client-id", entity_name=f"greedy-{size}")]

    def limit(value: float | None) -> None:
        op = quotas.OpData(key="producer_byte_rate", value=value or 0.0, remove=value is None)
        entry = quotas.EntryData(entity=entity, ops=[op])
        both.same(ApiKey.ALTER_CLIENT_QUOTAS, 1, quotas.AlterClientQuotasRequest(entries=[entry]))

    limit(1_000.0)
    batch = build_batch([Record(0, 0, b"key", b"x" * size)], base_offset=0)
    data = PartitionProduceData(index=1, records=bytes(batch))
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    waits = []
    for known in both.brokers:
        broker = Broker(known.name, known.address)
        broker._connection = ClientConnection(client_id=f"greedy-{size}")
        answer = broker.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
        waits.append(answer.throttle_time_ms)
        broker.close()
    limit(None)
    assert waits[0] == waits[1]
    assert bool(waits[1]) == (size > 10_000)
