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
from behaviours.library import (
    LibraryDriver,
    PlacedReads,
    consumer_options,
    member_options,
    producer_options,
    received,
)
from behaviours.login import python_options
from behaviours.reading import Reading
from behaviours.securing import Securing
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing

T = TypeVar("T")
NO_LOGIN = -1
"""It tells in its log only why it cannot connect."""


class _Loop:
    """An event loop on a thread of its own: the client runs while the test does other things."""

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
            max_batch_size=max(16384, sending.request_bytes_max),
            **producer_options(bootstrap, sending),
        )
        await self._client.start()

    def send(self, topic: str, message: Message) -> _Promise:
        try:
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
        except KafkaError as error:
            # It asks for the topic before it takes a message.
            raise Refused(error.errno, str(error)) from error
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


class _Consumer(PlacedReads):
    place_type = TopicPartition

    def __init__(self, bootstrap: str, wait_ms_max: int, bytes_max: int) -> None:
        self._loop = _Loop()
        self._loop.run(self._start(bootstrap, wait_ms_max, bytes_max))

    async def _start(self, bootstrap: str, wait_ms_max: int, bytes_max: int) -> None:
        self._client = AIOKafkaConsumer(**consumer_options(bootstrap, wait_ms_max, bytes_max))
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
        return received(self._loop.run(self._client.getmany(timeout_ms=int(seconds * 1000))))

    def partitions(self, topic: str) -> list[int]:
        async def partitions() -> list[int]:
            # Asks for the metadata of a topic that it does not read yet.
            await self._client._client._wait_on_metadata(topic)
            return sorted(self._client._client.cluster.partitions_for_topic(topic) or ())

        return self._loop.run(partitions())

    def _done(self, outcome: Any) -> Any:
        return self._loop.run(outcome)

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
        self._loop.run(self._join(topic, member_options(bootstrap, group, session_ms, instance)))

    async def _join(self, topic: str, options: dict[str, Any]) -> None:
        self._client = AIOKafkaConsumer(topic, **options)
        await self._client.start()

    def assignment(self) -> set[int]:
        async def assignment() -> set[int]:
            return {each.partition for each in self._client.assignment()}

        return self._loop.run(assignment())


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._loop = _Loop()
        try:
            self._loop.run(self._start(bootstrap))
        except Refused:
            self._loop.close()
            raise

    async def _start(self, bootstrap: str) -> None:
        self._client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, **python_options(bootstrap))
        try:
            await self._client.start()
        except KafkaError as error:
            await self._client.close()
            raise Refused(NO_LOGIN, str(error)) from error

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


class AioKafka(LibraryDriver):
    """All codecs come with cramjam, which the server has too."""

    cannot: ClassVar[Mapping[str, str]] = {
        "delete_group": "aiokafka has no call that deletes a group",
        "invalid_record": "aiokafka does not know error 87, and says -1",
    }
    opens_producer = _Producer
    opens_consumer = _Consumer
    opens_member = _Member
    opens_admin = _Admin


class TestAioKafka(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    driver = AioKafka()
    client = f"aiokafka {version('aiokafka')}"
