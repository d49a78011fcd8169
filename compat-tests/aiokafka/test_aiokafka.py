"""aiokafka, unmodified, against the server: the behaviours of compat-tests/behaviours."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError
from behaviours.administering import Administering
from behaviours.delaying import Delaying
from behaviours.driver import (
    SECONDS_MAX,
    GroupState,
    Message,
    Place,
    Received,
    Refused,
    Sending,
)
from behaviours.grouping import Grouping
from behaviours.hosting import apart
from behaviours.program import ProgramDriver
from behaviours.reading import Reading
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing

T = TypeVar("T")


class _Loop:
    """An event loop on a thread of its own: the client goes on while the test does other things."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS_MAX)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SECONDS_MAX)
        self.loop.close()


class _Promise:
    def __init__(self, loop: _Loop, future: Any) -> None:
        self._loop = loop
        self._future = future

    def result(self) -> Place:
        try:
            metadata = self._loop.run(self._wait())
        except KafkaError as error:
            raise Refused(error.errno, str(error)) from error
        # Without acks there is nothing to tell.
        return Place(-1, -1) if metadata is None else Place(metadata.partition, metadata.offset)

    async def _wait(self) -> Any:
        return await self._future


class _Producer:
    def __init__(self, bootstrap: str, sending: Sending) -> None:
        self._loop = _Loop()
        self._loop.run(self._start(bootstrap, sending))

    async def _start(self, bootstrap: str, sending: Sending) -> None:
        self._client = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=sending.acks,
            enable_idempotence=sending.is_idempotent,
            compression_type=None if sending.codec == "none" else sending.codec,
            linger_ms=sending.linger_ms,
            max_request_size=sending.request_bytes_max,
            max_batch_size=max(16384, sending.request_bytes_max),
            transactional_id=sending.transactional_id,
        )
        await self._client.start()

    def send(self, topic: str, message: Message) -> _Promise:
        future = self._loop.run(
            self._client.send(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
        )
        return _Promise(self._loop, future)

    def flush(self) -> None:
        self._loop.run(self._client.flush())

    def begin(self) -> None:
        self._loop.run(self._client.begin_transaction())

    def commit(self) -> None:
        self._loop.run(self._client.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._client.abort_transaction())

    def close(self) -> None:
        self._loop.run(self._client.stop())
        self._loop.close()


class _Consumer:
    def __init__(self, bootstrap: str, wait_ms_max: int, bytes_max: int) -> None:
        self._loop = _Loop()
        self._loop.run(self._start(bootstrap, wait_ms_max, bytes_max))

    async def _start(self, bootstrap: str, wait_ms_max: int, bytes_max: int) -> None:
        self._client = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=wait_ms_max,
            max_partition_fetch_bytes=bytes_max,
        )
        await self._client.start()

    def assign(self, topic: str, partitions: Sequence[int], offset: int = 0) -> None:
        async def assign() -> None:
            assigned = [TopicPartition(topic, partition) for partition in partitions]
            self._client.assign(assigned)
            for each in assigned:
                self._client.seek(each, offset)

        self._loop.run(assign())

    def seek(self, topic: str, partition: int, offset: int) -> None:
        async def seek() -> None:
            self._client.seek(TopicPartition(topic, partition), offset)

        self._loop.run(seek())

    def poll(self, seconds: float) -> list[Received]:
        found = self._loop.run(self._client.getmany(timeout_ms=int(seconds * 1000)))
        return [
            Received(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
            for records in found.values()
            for r in records
        ]

    def partitions(self, topic: str) -> list[int]:
        async def partitions() -> list[int]:
            # Asks for the metadata of a topic that it does not read yet.
            await self._client._client._wait_on_metadata(topic)
            return sorted(self._client._client.cluster.partitions_for_topic(topic) or ())

        return self._loop.run(partitions())

    def beginning(self, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        return int(self._loop.run(self._client.beginning_offsets([place]))[place])

    def end(self, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        return int(self._loop.run(self._client.end_offsets([place]))[place])

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)
        found = self._loop.run(self._client.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self._loop.run(self._client.stop())
        self._loop.close()


class _Member(_Consumer):
    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        session_ms: int | None,
        instance: str | None,
    ) -> None:
        self._loop = _Loop()
        self._loop.run(self._join(bootstrap, group, topic, session_ms, instance))

    async def _join(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        session_ms: int | None,
        instance: str | None,
    ) -> None:
        session = {} if session_ms is None else {"session_timeout_ms": session_ms}
        self._client = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            group_instance_id=instance,
            isolation_level="read_committed",
            **session,
        )
        await self._client.start()

    def assignment(self) -> set[int]:
        async def assignment() -> set[int]:
            return {each.partition for each in self._client.assignment()}

        return self._loop.run(assignment())

    def commit(self) -> None:
        self._loop.run(self._client.commit())

    def committed(self, topic: str, partition: int) -> int | None:
        place = TopicPartition(topic, partition)
        found: int | None = self._loop.run(self._client.committed(place))
        return found


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._loop = _Loop()
        self._loop.run(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await self._client.start()

    def create(
        self, topic: str, partition_count: int, config: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partition_count, 1, topic_configs=dict(config or {}))
        _check(self._loop.run(self._client.create_topics([new])).topic_errors)

    def grow(self, topic: str, partition_count: int) -> None:
        # The one call of these that raises.
        try:
            self._loop.run(self._client.create_partitions({topic: NewPartitions(partition_count)}))
        except KafkaError as error:
            raise Refused(error.errno, str(error)) from error

    def delete(self, topic: str) -> None:
        _check(self._loop.run(self._client.delete_topics([topic])).topic_error_codes)

    def topics(self) -> set[str]:
        return set(self._loop.run(self._client.list_topics()))

    def configs(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._loop.run(self._client.describe_configs([resource]))
        (found,) = answer.resources
        return {entry[0]: entry[1] for entry in found[4]}

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))
        (answer,) = self._loop.run(self._client.alter_configs([resource]))
        assert [each[0] for each in answer.resources] == [0]

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        wanted = {TopicPartition(topic, partition): RecordsToDelete(before)}
        self._loop.run(self._client.delete_records(wanted))

    def groups(self) -> set[str]:
        return {each[0] for each in self._loop.run(self._client.list_consumer_groups())}

    def group(self, group: str) -> GroupState:
        (answer,) = self._loop.run(self._client.describe_consumer_groups([group]))
        (found,) = answer.groups
        return GroupState(found[2], len(found[5]))

    def group_offsets(self, group: str, topic: str) -> Mapping[int, int]:
        found = self._loop.run(self._client.list_consumer_group_offsets(group))
        return {place.partition: at.offset for place, at in found.items() if place.topic == topic}

    def delete_group(self, group: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.close()


def _check(outcomes: Sequence[Any]) -> None:
    """It gives errors back instead of raising them: (name, code, perhaps a text)."""
    for _, code, *text in outcomes:
        if code:
            raise Refused(code, str(text))


class AioKafka:
    """All codecs come with cramjam, which the server has too."""

    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    why_not = ""
    sends_null_headers = True
    cannot: ClassVar[Mapping[str, str]] = {
        "delete_group": "aiokafka has no call that deletes a group",
        "invalid_record": "aiokafka does not know error 87, and says -1",
    }

    def producer(self, bootstrap: str, sending: Sending) -> _Producer:
        return _Producer(bootstrap, sending)

    def consumer(
        self, bootstrap: str, *, wait_ms_max: int = 500, bytes_max: int = 1 << 20
    ) -> _Consumer:
        return _Consumer(bootstrap, wait_ms_max, bytes_max)

    def admin(self, bootstrap: str) -> _Admin:
        return _Admin(bootstrap)

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int | None = None,
        instance: str | None = None,
    ) -> _Member:
        return _Member(bootstrap, group, topic, session_ms, instance)

    def apart(self) -> ProgramDriver:
        return apart(__file__, "AioKafka", self)


class TestAioKafka(Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving):
    driver = AioKafka()
    client = f"aiokafka {version('aiokafka')}"
