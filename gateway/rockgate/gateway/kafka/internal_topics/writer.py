"""Writes what changed to Kafka's internal topics, some time later and each key once.

The folds are the truth, and these topics are for tools (docs/decisions/0013). A flush appends the
last values of some hundred keys, a batch for each partition, in one atomic group; a key that has no
value any longer gets a tombstone. Once nothing is left, the position up to which everything was
written is appended with it. After a crash what changed behind that is written again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.internal_topics import formats
from rockgate.gateway.kafka.internal_topics.changed import (
    Changed,
    ChangedGroup,
    ChangedKeys,
    ChangedOffset,
)
from rockgate.gateway.kafka.internal_topics.config import InternalTopicsConfig
from rockgate.gateway.kafka.internal_topics.partition import partition_of
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.topics.placement import CoordinatorType
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import Transaction
from rockgate.protocol.kafka.records.batch import stamp
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.api.append import Draft, Intake, StateAppender
from rockgate.store.api.clock import Clock
from rockgate.store.api.folds import KeyedFold
from rockgate.store.api.log import Epochs
from rockgate.store.api.progress import Progress
from rockgate.store.api.queues import Queues
from rockgate.store.api.topics import NewTopic, Topic, Topics
from rockgate.store.errors import StoreError

NAME: Final = "internal topics"
TOPIC: Final = b"rmq_sys_rockgate_internal_topics"
WRITTEN_TO: Final = "written to"
OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
FLUSH_MS: Final = 500
"""How long changes are collected, so that a key that changes often is written seldom."""
KEYS_MAX: Final = 200
BYTES_MAX: Final = 256 << 10
"""Keys and bytes of one flush; further ones follow in the next round of upkeep."""
GROUP_BYTES_MAX: Final = 512 << 10
"""A larger group is written without its members."""
PARTITIONS_MAX: Final = 10_000
"""Partitions of an open transaction that are written; others are left out."""
_CONFIG: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
log = logging.getLogger(__name__)


class Written(NamedTuple):
    """The record of a key."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None


class InternalTopics:
    """Keeps the internal topics up to date. Created once the folds are restored."""

    def __init__(
        self,
        *,
        config: InternalTopicsConfig,
        topics: Topics,
        queues: Queues,
        progress: Progress,
        transactions: Transactions,
        groups: SavedGroups,
        position: KeyedFold[str, int],
        end: Callable[[], int],
        appender: StateAppender,
        epochs: Epochs,
        clock: Clock,
    ) -> None:
        """`position` is the fold of the position that was written to, `end` the log's end."""
        self._counts = {
            OFFSETS: config.offsets_partitions,
            TRANSACTIONS: config.transactions_partitions,
        }
        self._topics = topics
        self._queues = queues
        self._progress = progress
        self._transactions = transactions
        self._groups = groups
        self._position = position
        self._end = end
        self._appender = appender
        self._epoch = epochs.current
        self._clock = clock
        self._flushed_ms = clock.monotonic_ms()
        # Names of deleted topics, until the tombstones of their offsets are written.
        self._deleted: dict[bytes, str] = {}
        self.changes = ChangedKeys(progress, transactions, position.find(WRITTEN_TO) or 0)
        progress.on_changed.append(self.changes.offsets)
        transactions.on_changed.append(self.changes.transaction)
        groups.on_changed.append(self.changes.group)
        topics.on_deleted.append(self._forget)

    def step(self) -> bool:
        """Write some of what changed, if it is time to; true if there is more."""
        if not self.changes.is_caught_up:
            self.changes.catch_up()
            return True
        now_ms = self._clock.monotonic_ms()
        if self.changes and now_ms - self._flushed_ms >= FLUSH_MS:
            self.flush()
            if self.changes:
                return True
            self._flushed_ms = now_ms
        if not self.changes:
            self._deleted.clear()
        return False

    def flush(self) -> None:
        """Write the keys that changed first."""
        end = self._end()
        keys: list[Changed] = []
        batches: dict[tuple[str, int], list[Record]] = {}
        now_ms, size = self._clock.now_ms(), 0
        for key in self.changes.first(KEYS_MAX):
            if size >= BYTES_MAX:
                break
            keys.append(key)
            written = self._record(key)
            if written is not None:
                batch = batches.setdefault(written[:2], [])
                batch.append(Record(len(batch), now_ms, written.key, written.value))
                size += len(written.key) + len(written.value or b"")
        intakes = [
            intake for place, batch in batches.items() for intake in self._intake(place, batch)
        ]
        if len(keys) == len(self.changes):
            # Everything up to the end as it was before this is in the topics then.
            change = Draft(
                topic=TOPIC,
                queue_id=0,
                offset=-1,
                body=self._position.change({WRITTEN_TO: end}),
            )
            intakes.append(Intake(None, change))
        if intakes:
            self._appender.group(intakes, is_upkeep=True)
        self.changes.written(keys)

    def _intake(self, place: tuple[str, int], records: list[Record]) -> list[Intake]:
        """The batch of a partition; none if a topic of that name is not ours."""
        name, partition = place
        topic = self._topics.find(name)
        if topic is None or not topic.is_internal:
            return []
        queue = self._queues.of(topic.id)[partition]
        draft = Draft(
            topic=queue.topic,
            queue_id=partition,
            offset=-1,
            body=bytes(build_batch(records, base_offset=0)),
            batch_count=len(records),
            born_ms=records[0].timestamp,
            stamp=self._stamp,
        )
        return [Intake(queue, draft)]

    def _stamp(self, view: memoryview, offset: int) -> None:
        stamp(view, offset, self._epoch)

    def prepare(self, type_: CoordinatorType) -> None:
        """Create the topic of a type of coordinator; without room for it, with its first record."""
        try:
            if type_ is CoordinatorType.GROUP:
                self._ensure(OFFSETS)
            elif type_ is CoordinatorType.TRANSACTION:
                self._ensure(TRANSACTIONS)
        except StoreError as error:
            log.warning("cannot create internal topic reason=%s", error)

    # Records

    def _record(self, key: Changed) -> Written | None:
        """The last value of a key; None if it cannot be written."""
        if isinstance(key, ChangedOffset):
            return self._offset(key)
        if isinstance(key, ChangedGroup):
            saved = self._groups.find(key.name)
            value = None if saved is None else _group(saved.group, saved.store_ms)
            return self._written(OFFSETS, key.name, formats.group_key(key.name), value)
        found = self._transactions.find(key.id)
        value = None if found is None else self._transaction(found)
        return self._written(TRANSACTIONS, key.id, formats.transaction_key(key.id), value)

    def _offset(self, key: ChangedOffset) -> Written | None:
        topic = self._topics.find_id(key.topic_id)
        name = self._deleted.get(key.topic_id) if topic is None else names.to_kafka(topic.name)
        if name is None:
            return None
        committed = self._progress.fetch(*key)
        return self._written(
            OFFSETS,
            key.group,
            formats.offset_key(key.group, name, key.queue_id),
            None if committed is None else formats.offset_value(committed),
        )

    def _transaction(self, found: Transaction) -> bytes:
        partitions: dict[str, list[int]] = {}
        for topic_id, queue_id in list(found.partitions)[:PARTITIONS_MAX]:
            topic = self._topics.find_id(topic_id)
            if topic is not None:
                partitions.setdefault(names.to_kafka(topic.name), []).append(queue_id)
        return formats.transaction_value(found, partitions)

    def _written(self, topic: str, name: str, key: bytes, value: bytes | None) -> Written:
        count = self._ensure(topic).queue_count
        return Written(topic, partition_of(name, count), key, value)

    def _ensure(self, name: str) -> Topic:
        """An internal topic, created with the first record."""
        topic = self._topics.find(name)
        if topic is None:
            new = NewTopic(
                name=name, queue_count=self._counts[name], config=_CONFIG, is_internal=True
            )
            topic = self._topics.create(new)
            log.info("created internal topic name=%s partitions=%d", name, topic.queue_count)
        return topic

    def _forget(self, topic: Topic) -> None:
        self._deleted[topic.id] = names.to_kafka(topic.name)


def _group(saved: SavedGroup, changed_ms: int) -> bytes:
    value = formats.group_value(saved, changed_ms)
    if len(value) <= GROUP_BYTES_MAX:
        return value
    bare = SavedGroup(saved.kind, saved.generation, saved.protocol_type)
    return formats.group_value(bare, changed_ms)
