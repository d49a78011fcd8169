import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin

from rockgate.gateway.kafka.request.permitted import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import encode, join
from rockgate.store.state.topic import Topic

EPOCH = 1


def declared(topic: Topic, version: int, operations: int = NOT_ASKED) -> bytes:
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=NODE_ID,
                leader_epoch=EPOCH,
                replica_nodes=[NODE_ID],
                isr_nodes=[NODE_ID],
            )
            for index in range(topic.queue_count)
        ],
        topic_authorized_operations=operations,
    )
    return encode(MetadataResponse(topics=[described]), version)


def shown(admin: Admin, topic: Topic, version: int, *, operations: int = NOT_ASKED) -> bytes:
    part = admin.metadata_cache.topic(topic, version, operations=operations)
    return encode(MetadataResponse(topics=[part]), version)


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_shown_as_the_declared_codec_would(version: int) -> None:
    admin = Admin()
    assert admin.store.epochs.current == EPOCH
    for topic in (admin.topic("a", 1), admin.topic("b", 3), admin.topic("c", 1000)):
        for _ in range(2):
            assert shown(admin, topic, version) == declared(topic, version)
            assert shown(admin, topic, version, operations=TOPIC_OPERATIONS) == declared(
                topic, version, TOPIC_OPERATIONS
            )


def test_a_topic_is_encoded_once_until_it_changes() -> None:
    admin = Admin()
    topic = admin.topic("a", 2)
    first = admin.metadata_cache.topic(topic, 12, operations=NOT_ASKED)
    assert admin.metadata_cache.topic(topic, 12, operations=NOT_ASKED) is first
    admin.store.topics.grow({topic: 3})
    assert shown(admin, topic, 12) == declared(topic, 12)


def test_a_topic_of_many_partitions_is_not_kept() -> None:
    admin = Admin()
    topic = admin.topic("a", 1000)
    first = admin.metadata_cache.topic(topic, 12, operations=NOT_ASKED)
    assert admin.metadata_cache.topic(topic, 12, operations=NOT_ASKED) is not first


def test_the_list_of_all_topics_is_kept_until_something_changes() -> None:
    admin = Admin()
    topic = admin.topic("a")
    part = admin.metadata_cache.topic(topic, 12, operations=NOT_ASKED)
    whole, version = join(MetadataResponseTopic, 12, [part]), admin.catalog.version
    admin.metadata_cache.keep_all(version, whole, operations=NOT_ASKED)
    assert admin.metadata_cache.all_topics(version, 12, operations=NOT_ASKED) is whole
    assert admin.metadata_cache.all_topics(version, 11, operations=NOT_ASKED) is None
    assert admin.metadata_cache.all_topics(version, 12, operations=TOPIC_OPERATIONS) is None
    assert admin.metadata_cache.all_topics(version + 1, 12, operations=NOT_ASKED) is None
    admin.metadata_cache.forget(topic)
    assert admin.metadata_cache.all_topics(version, 12, operations=NOT_ASKED) is None


def test_a_deleted_topic_is_let_go_of_in_every_form() -> None:
    admin = Admin()
    topic = admin.topic("a")
    for version in (0, 12):
        admin.metadata_cache.topic(topic, version, operations=NOT_ASKED)
    admin.store.topics.delete([topic])
    assert not any(admin.metadata_cache._topics.values())


def test_the_operations_are_those_that_kafka_names() -> None:
    assert (TOPIC_OPERATIONS, CLUSTER_OPERATIONS) == (3576, 8096)
