"""The calls of aiokafka for the recording."""

import asyncio
from collections.abc import Callable
from typing import Any

from steps import Report, step


def aiokafka(address: str, report: Report) -> None:
    asyncio.run(_aiokafka(address, report))


async def _aiokafka(address: str, report: Report) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
    from aiokafka.structs import OffsetAndMetadata, TopicPartition

    topic, group = "golden-aiokafka", "golden-group-aiokafka"
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    with step(report, "create_topics"):
        await admin.create_topics([NewTopic(topic, 2, 1)])
    for acks, idempotent in ((0, False), (1, False), ("all", True)):
        with step(report, f"produce acks={acks}"):
            async with AIOKafkaProducer(
                bootstrap_servers=address, acks=acks, enable_idempotence=idempotent
            ) as producer:
                await producer.send_and_wait(topic, b"value", key=b"k", headers=[("h", b"x")])
    with step(report, "transaction"):
        async with (
            AIOKafkaProducer(bootstrap_servers=address, transactional_id="tx-aio") as producer,
            producer.transaction(),
        ):
            await producer.send_and_wait(topic, b"in a transaction")
            await producer.send_offsets_to_transaction(
                {TopicPartition(topic, 0): OffsetAndMetadata(1, "")}, f"{group}-tx"
            )
    with step(report, "consume"):
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            heartbeat_interval_ms=300,
            session_timeout_ms=6000,
        )
        await consumer.start()
        for _ in range(3):
            await asyncio.wait_for(consumer.getone(), 10)
        await consumer.commit()
        await consumer.getmany(timeout_ms=700)
        await consumer.end_offsets([TopicPartition(topic, 0)])
        await consumer.stop()
    partition = TopicPartition(topic, 0)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000000"})
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("describe_cluster", admin.describe_cluster),
        ("list_topics", admin.list_topics),
        ("describe_topics", lambda: admin.describe_topics([topic])),
        ("create_partitions", lambda: admin.create_partitions({topic: _new_partitions(3)})),
        ("alter_configs", lambda: admin.alter_configs([resource])),
        ("describe_configs", lambda: admin.describe_configs([resource])),
        ("list_consumer_groups", admin.list_consumer_groups),
        ("describe_consumer_groups", lambda: admin.describe_consumer_groups([group])),
        ("list_consumer_group_offsets", lambda: admin.list_consumer_group_offsets(group)),
        ("delete_records", lambda: admin.delete_records({partition: _records_to_delete(1)})),
        ("delete_topics", lambda: admin.delete_topics([topic])),
    ]
    for name, call in steps:
        with step(report, name):
            await call()
    await admin.close()


def _new_partitions(count: int) -> Any:
    from aiokafka.admin import NewPartitions

    return NewPartitions(count)


def _records_to_delete(offset: int) -> Any:
    from aiokafka.admin import RecordsToDelete

    return RecordsToDelete(before_offset=offset)
