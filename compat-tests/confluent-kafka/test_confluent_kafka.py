"""confluent-kafka (librdkafka), unmodified, against the server: compat-tests/behaviours."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import confluent_kafka
from behaviours.administering import Administering
from behaviours.consumer_protocol import ConsumerProtocol
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
from behaviours.library import LibraryDriver
from behaviours.login import librdkafka_options
from behaviours.reading import Reading
from behaviours.securing import Securing
from behaviours.surviving import Surviving
from behaviours.transacting import Transacting
from behaviours.writing import Writing
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (
    RESOURCE_TOPIC,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

LOGIN_FAILED = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class _Promise:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._outcome: Place | Refused | None = None

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._outcome = Refused(error.code(), error.str())
        else:
            self._outcome = Place(message.partition(), message.offset())

    def result(self) -> Place:
        deadline = time.monotonic() + SECONDS_MAX
        while self._outcome is None:
            assert time.monotonic() < deadline, "no word about a message in time"
            self._client.poll(0.05)
        if isinstance(self._outcome, Refused):
            raise self._outcome
        return self._outcome


class _Producer:
    def __init__(self, bootstrap: str, sending: Sending) -> None:
        name = sending.transactional_id
        self._client = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": sending.acks,
                "enable.idempotence": sending.is_idempotent,
                "compression.type": sending.codec,
                "linger.ms": sending.linger_ms,
                "message.max.bytes": sending.request_bytes_max,
                "reconnect.backoff.max.ms": 500,
                **({"transactional.id": name} if name else {}),
                **librdkafka_options(bootstrap),
            }
        )
        if name:
            self._client.init_transactions(SECONDS_MAX)

    def send(self, topic: str, message: Message) -> _Promise:
        promise = _Promise(self._client)
        options: dict[str, Any] = {}
        if message.partition is not None:
            options["partition"] = message.partition
        if message.timestamp_ms is not None:
            options["timestamp"] = message.timestamp_ms
        self._client.produce(
            topic,
            value=message.value,
            key=message.key,
            headers=list(message.headers),
            on_delivery=promise.delivered,
            **options,
        )
        self._client.poll(0)
        return promise

    def flush(self) -> None:
        assert self._client.flush(SECONDS_MAX) == 0, "messages are left in the producer"

    def begin(self) -> None:
        self._client.begin_transaction()

    def commit(self) -> None:
        self._client.commit_transaction(SECONDS_MAX)

    def abort(self) -> None:
        self._client.abort_transaction(SECONDS_MAX)

    def close(self) -> None:
        self._client.flush(SECONDS_MAX)


class _Consumer:
    def __init__(self, bootstrap: str, wait_ms_max: int, bytes_max: int) -> None:
        self._client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                # librdkafka wants a name even where nothing is committed and no group is joined.
                "group.id": "none",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
                "fetch.wait.max.ms": wait_ms_max,
                "fetch.message.max.bytes": bytes_max,
                **librdkafka_options(bootstrap),
                "reconnect.backoff.max.ms": 500,
            }
        )

    def assign(self, topic: str, partitions: Sequence[int], offset: int = 0) -> None:
        self._client.assign([TopicPartition(topic, each, offset) for each in partitions])

    def seek(self, topic: str, partition: int, offset: int) -> None:
        # Its seek wants a partition whose fetching has begun.
        self._client.poll(0)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                self._client.seek(TopicPartition(topic, partition, offset))
                return
            except KafkaException as error:
                assert error.args[0].code() == KafkaError._STATE, error
                assert time.monotonic() < deadline, "seek was never possible"
                self._client.poll(0.01)

    def poll(self, seconds: float) -> list[Received]:
        first = self._client.poll(seconds)
        found = [] if first is None else [first, *self._client.consume(10_000, 0)]
        received = []
        for each in found:
            if each.error() is not None:
                assert each.error().retriable() or each.error().code() < 0, each.error()
                continue
            headers = tuple((name, value) for name, value in each.headers() or ())
            received.append(
                Received(
                    each.partition(),
                    each.offset(),
                    each.key(),
                    each.value(),
                    headers,
                    each.timestamp()[1],
                )
            )
        return received

    def partitions(self, topic: str) -> list[int]:
        metadata = self._client.list_topics(topic, SECONDS_MAX)
        return sorted(metadata.topics[topic].partitions)

    def beginning(self, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        return int(self._client.get_watermark_offsets(place, SECONDS_MAX)[0])

    def end(self, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        return int(self._client.get_watermark_offsets(place, SECONDS_MAX)[1])

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition, timestamp_ms)
        (found,) = self._client.offsets_for_times([place], SECONDS_MAX)
        return None if found.offset < 0 else int(found.offset)

    def close(self) -> None:
        self._client.close()


class _Member(_Consumer):
    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        session_ms: int | None,
        instance: str | None,
        *,
        protocol: str = "classic",
    ) -> None:
        optional = {"session.timeout.ms": session_ms, "group.instance.id": instance}
        # In the consumer protocol the timeouts are the server's.
        timing = {"heartbeat.interval.ms": 300} if protocol == "classic" else {}
        self._client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "group.protocol": protocol,
                "reconnect.backoff.max.ms": 500,
                **timing,
                **librdkafka_options(bootstrap),
                **{name: value for name, value in optional.items() if value is not None},
            }
        )
        self._client.subscribe([topic])

    def assignment(self) -> set[int]:
        return {each.partition for each in self._client.assignment()}

    def commit(self) -> None:
        self._client.commit(asynchronous=False)

    def committed(self, topic: str, partition: int) -> int | None:
        place = TopicPartition(topic, partition)
        (found,) = self._client.committed([place], SECONDS_MAX)
        return None if found.offset < 0 else int(found.offset)


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._errors: list[Any] = []
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "error_cb": self._errors.append,
                **librdkafka_options(bootstrap),
            }
        )

    def create(
        self, topic: str, partition_count: int, config: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partition_count, 1, config=dict(config or {}))
        _wait(self._client.create_topics([new]))

    def grow(self, topic: str, partition_count: int) -> None:
        _wait(self._client.create_partitions([NewPartitions(topic, partition_count)]))

    def delete(self, topic: str) -> None:
        _wait(self._client.delete_topics([topic]))

    def topics(self) -> set[str]:
        # It keeps trying, and reports a login that failed by its callback.
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                return set(self._client.list_topics(timeout=2).topics)
            except KafkaException as error:
                self._client.poll(0)
                told = [each for each in self._errors if each.code() in LOGIN_FAILED]
                if told:
                    raise Refused(told[0].code(), told[0].str()) from error
                if time.monotonic() > deadline:
                    raise

    def configs(self, topic: str) -> Mapping[str, str]:
        found = _wait(self._client.describe_configs([ConfigResource(RESOURCE_TOPIC, topic)]))
        return {name: entry.value for name, entry in found.items()}

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(RESOURCE_TOPIC, topic, incremental_configs=entries)
        _wait(self._client.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        _wait(self._client.delete_records([TopicPartition(topic, partition, before)]))

    def groups(self) -> set[str]:
        found = self._client.list_consumer_groups().result(SECONDS_MAX)
        return {each.group_id for each in found.valid}

    def group(self, group: str) -> GroupState:
        found = _wait(self._client.describe_consumer_groups([group]))
        state = {"STABLE": "Stable", "EMPTY": "Empty"}.get(found.state.name, found.state.name)
        return GroupState(state, len(found.members))

    def group_offsets(self, group: str, topic: str) -> Mapping[int, int]:
        asked = ConsumerGroupTopicPartitions(group)
        found = _wait(self._client.list_consumer_group_offsets([asked]))
        return {e.partition: e.offset for e in found.topic_partitions if e.topic == topic}

    def delete_group(self, group: str) -> None:
        _wait(self._client.delete_consumer_groups([group]))

    def close(self) -> None:
        pass


def _wait(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(SECONDS_MAX)
    except KafkaException as error:
        raise Refused(error.args[0].code(), error.args[0].str()) from error


class ConfluentKafka(LibraryDriver):
    """librdkafka has all codecs built in."""

    opens_producer = _Producer
    opens_consumer = _Consumer
    opens_member = _Member
    opens_admin = _Admin

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int | None = None,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> _Member:
        return _Member(
            bootstrap, group, topic, session_ms, instance, protocol=protocol or "classic"
        )


class TestConfluentKafka(
    Administering, Writing, Reading, Grouping, Transacting, Delaying, Surviving, Securing
):
    driver = ConfluentKafka()
    client = f"confluent-kafka {version('confluent-kafka')}"


class TestConsumerProtocol(ConsumerProtocol):
    driver = ConfluentKafka()
    client = TestConfluentKafka.client
