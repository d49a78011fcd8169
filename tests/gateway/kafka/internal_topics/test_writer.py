"""What changes in the folds is in Kafka's internal topics soon after, and after any crash."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup, SavedMember
from rockgate.gateway.kafka.internal_topics import formats, writer
from rockgate.gateway.kafka.internal_topics.config import InternalTopicsConfig
from rockgate.gateway.kafka.internal_topics.partition import partition_of
from rockgate.gateway.kafka.internal_topics.writer import (
    FLUSH_MS,
    OFFSETS,
    TRANSACTIONS,
    WRITTEN_TO,
    InternalTopics,
)
from rockgate.gateway.kafka.topics.placement import CoordinatorType
from rockgate.gateway.kafka.transactions import changes
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.records.batch import split
from rockgate.protocol.kafka.records.record import read_records
from rockgate.store.api.progress import Commit

GROUP = "readers"
CONFIG = InternalTopicsConfig(offsets_partitions=5, transactions_partitions=3)
Values = dict[bytes, list[bytes | None]]


class Mirror(Admin):
    """A store with the writer of internal topics."""

    def open(self) -> None:
        super().open()
        store = self.store
        self.writer = InternalTopics(
            config=CONFIG,
            topics=store.topics,
            queues=store.queues,
            progress=store.progress,
            transactions=self.folds.transactions,
            groups=self.folds.groups,
            position=self.folds.internal_topics,
            end=lambda: store.log.end,
            appender=store.appender,
            epochs=store.epochs,
            clock=store.clock,
        )

    def write(self) -> None:
        """Let the writer do what is due."""
        while self.writer.step():
            pass
        self.pass_time(FLUSH_MS)
        while self.writer.step():
            pass

    def commit(self, topic: Any, queue_id: int, offset: int, group: str = GROUP) -> None:
        self.store.progress.commit(group, [Commit(topic.id, queue_id, offset, 3, "meta")])

    def transact(self, id_: str, producer_id: int = 7) -> None:
        producer = ProducerIdAndEpoch(producer_id, 0)
        init = changes.Init(id_, producer, ProducerIdAndEpoch(-1, -1), 60_000)
        body = changes.encode(changes.TransactionChangeKind.INIT, init)
        self.store.appender.append_state(changes.TOPIC, body)

    def records(self, name: str) -> Values:
        """All records of an internal topic, in the partition that their keys belong to."""
        topic, found = self.store.topics.get(name), Values()
        assert topic.is_internal
        for queue in self.store.queues.of(topic.id):
            bodies = self.store.reader.batches(
                queue, queue.log_start, queue.next_offset, 1 << 20, at_least_one=True, cold=None
            ).bodies
            offset = queue.log_start
            for body in bodies:
                for _, view in split(memoryview(body)):
                    for record in read_records(view):
                        assert record.offset == offset
                        offset += 1
                        key = record.key or b""
                        assert partition_of(name_in(key), topic.queue_count) == (queue.queue_id)
                        found.setdefault(key, []).append(record.value)
        return found


def name_in(key: bytes) -> str:
    (size,) = struct.unpack_from(">h", key, 2)
    return key[4 : 4 + size].decode()


def test_a_commit_is_in_the_topic_soon_and_a_removal_has_a_tombstone() -> None:
    world = Mirror()
    orders = world.topic("orders", 2)
    assert world.store.topics.find(OFFSETS) is None
    world.commit(orders, 1, 42)
    world.write()
    key = formats.offset_key(GROUP, "orders", 1)
    committed = world.store.progress.fetch(GROUP, orders.id, 1)
    assert committed is not None
    assert world.records(OFFSETS) == {key: [formats.offset_value(committed)]}
    topic = world.store.topics.get(OFFSETS)
    assert (topic.queue_count, topic.config["cleanup.policy"]) == (5, "compact")
    world.store.progress.delete_groups([GROUP])
    world.write()
    assert world.records(OFFSETS)[key][-1] is None


def test_a_key_that_changes_often_is_written_once_in_a_while() -> None:
    world = Mirror()
    orders = world.topic("orders", 1)
    for offset in range(100):
        world.commit(orders, 0, offset)
        world.writer.step()
    assert OFFSETS not in world.names()
    world.write()
    [values] = world.records(OFFSETS).values()
    assert len(values) == 1
    assert values[0] is not None and struct.unpack_from(">hq", values[0]) == (3, 99)
    end = world.store.log.end
    world.write()
    assert world.store.log.end == end, "nothing changed, nothing is written"


def test_offsets_of_a_deleted_topic_have_tombstones_by_its_name() -> None:
    world = Mirror()
    orders = world.topic("orders", 1)
    world.commit(orders, 0, 1)
    world.write()
    world.store.topics.delete([orders])
    world.write()
    assert world.records(OFFSETS)[formats.offset_key(GROUP, "orders", 0)][-1] is None


def test_transactional_ids_and_classic_groups_are_written() -> None:
    world = Mirror()
    world.transact("pay")
    member = SavedMember("m-1", None, "m", "/h", 10_000, 60_000, (("range", b"sub"),), b"assigned")
    saved = SavedGroup("classic", 3, "consumer", "range", "m-1", (member,))
    world.folds.groups.save(GROUP, saved)
    world.write()
    [(key, [value])] = world.records(TRANSACTIONS).items()
    assert key == formats.transaction_key("pay")
    assert value is not None
    assert struct.unpack_from(">hqhibi", value) == (0, 7, 0, 60_000, 0, -1)
    [(key, [value])] = world.records(OFFSETS).items()
    assert key == formats.group_key(GROUP)
    assert value is not None
    assert value.startswith(b"\0\3\0\x08consumer\0\0\0\3\0\5range\0\3m-1")
    assert value.endswith(b"\0\0\0\3sub\0\0\0\x08assigned")


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_changed_before_a_stop_is_written_after_the_start(*, is_killed: bool) -> None:
    world = Mirror()
    orders = world.topic("orders", 3)
    world.commit(orders, 0, 5)
    world.write()
    assert world.folds.internal_topics.find(WRITTEN_TO)
    world.commit(orders, 1, 6)
    world.transact("pay")
    (world.kill if is_killed else world.reopen)()
    world.write()
    found = world.records(OFFSETS)
    assert {key: len(values) for key, values in found.items()} == {
        formats.offset_key(GROUP, "orders", 0): 1,
        formats.offset_key(GROUP, "orders", 1): 1,
    }
    assert list(world.records(TRANSACTIONS)) == [formats.transaction_key("pay")]


def test_a_flush_is_bounded_and_the_next_round_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "KEYS_MAX", 10)
    world = Mirror()
    orders = world.topic("orders", 25)
    for queue_id in range(25):
        world.commit(orders, queue_id, queue_id)
    assert not world.folds.internal_topics.find(WRITTEN_TO)
    world.write()
    assert len(world.records(OFFSETS)) == 25
    assert world.folds.internal_topics.find(WRITTEN_TO)


def test_a_topic_of_that_name_that_a_client_created_is_left_alone() -> None:
    world = Mirror()
    mine = world.topic(OFFSETS, 2)
    world.commit(world.topic("orders", 1), 0, 1)
    world.write()
    assert all(queue.next_offset == 0 for queue in world.store.queues.of(mine.id))
    assert not world.writer.changes


@pytest.mark.parametrize(
    ("name", "partition"), [("", 0), ("a", 47), ("group", 47), ("polygenelubricants", 0), ("ü", 2)]
)
def test_partitions_are_by_java_s_hash(name: str, partition: int) -> None:
    # By Java: Math.abs(name.hashCode()) % 50, and 0 for Integer.MIN_VALUE.
    assert partition_of(name, 50) == partition


def test_a_topic_is_created_when_its_coordinator_is_asked_for() -> None:
    world = Mirror()
    world.writer.prepare(CoordinatorType.GROUP)
    assert world.names() == [OFFSETS]
    world.writer.prepare(CoordinatorType.TRANSACTION)
    world.writer.prepare(CoordinatorType.GROUP)
    assert world.names() == [OFFSETS, TRANSACTIONS]
