"""Offsets of transactions beside those that are committed plainly: what was written last counts.

What Apache Kafka 4.3.1 answers to the same requests in the same order.
"""

from __future__ import annotations

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger

from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.delete_groups import DeleteGroupsRequest
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rockgate.store.progress.progress import Commit

NONE = (0, -1)


class Offsets(Ledger):
    """A ledger with handlers of plain offsets."""

    def open(self) -> None:
        super().open()
        durability = self.durability
        catalog, progress = (
            StoreCatalog(self.store.topics, 1000),
            StoreProgress(self.store.progress),
        )
        self.handlers[ApiKey.OFFSET_COMMIT] = OffsetCommit(
            catalog=catalog,
            progress=progress,
            groups=self.groups,
            durability=durability,
            now_ms=self.store.clock.now_ms,
            metadata_bytes_max=4096,
        )
        self.handlers[ApiKey.OFFSET_DELETE] = OffsetDelete(
            catalog=catalog, progress=progress, groups=self.groups, durability=durability
        )
        self.handlers[ApiKey.DELETE_GROUPS] = DeleteGroups(
            groups=self.groups, durability=durability
        )

    def plain(self, offset: int, partition: int = 0) -> None:
        asked = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[asked])],
        )
        answer = self.send(ApiKey.OFFSET_COMMIT, request, 8)
        assert answer.topics[0].partitions[0].error_code == 0

    def delete(self, partition: int = 0) -> int:
        asked = OffsetDeleteRequestPartition(partition_index=partition)
        topic = OffsetDeleteRequestTopic(name="orders", partitions=[asked])
        request = OffsetDeleteRequest(group_id="g", topics=[topic])
        answer = self.send(ApiKey.OFFSET_DELETE, request, 0)
        return int(answer.error_code or answer.topics[0].partitions[0].error_code)

    def delete_group(self) -> int:
        request = DeleteGroupsRequest(groups_names=["g"])
        return int(self.send(ApiKey.DELETE_GROUPS, request, 2).results[0].error_code)

    def again(self, how: str) -> None:
        """Continue as it is, after a crash, or after a stop with a snapshot."""
        if how == "killed":
            self.kill()
        elif how == "stopped":
            self.reopen()


def opened() -> tuple[Offsets, ProducerIdAndEpoch]:
    ledger = Offsets()
    ledger.topic(partitions=4)
    return ledger, ledger.init().producer


again = pytest.mark.parametrize("how", ["running", "killed", "stopped"])


@again
def test_a_plain_commit_that_came_later_stays(how: str) -> None:
    ledger, producer = opened()
    assert ledger.commit_offset(producer, 10) == 0
    ledger.plain(20)
    ledger.again(how)
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.committed_offset() == (0, 20)
    ledger.again(how)
    assert ledger.committed_offset() == (0, 20)


@again
def test_a_plain_commit_that_came_earlier_is_replaced(how: str) -> None:
    ledger, producer = opened()
    ledger.plain(20)
    assert ledger.commit_offset(producer, 10) == 0
    ledger.again(how)
    assert ledger.end(producer, commit=True).code == 0
    ledger.again(how)
    assert ledger.committed_offset() == (0, 10)


def test_within_a_transaction_the_last_word_counts_too() -> None:
    ledger, producer = opened()
    assert ledger.commit_offset(producer, 10) == 0
    ledger.plain(20)
    assert ledger.commit_offset(producer, 11) == 0
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.committed_offset() == (0, 11)


@again
@pytest.mark.parametrize("first", ["early", "late"])
def test_of_two_transactions_the_later_offset_stays_whichever_ends_first(
    first: str, how: str
) -> None:
    ledger = Offsets()
    ledger.topic()
    producers = {name: ledger.init(name).producer for name in ("early", "late")}
    assert ledger.commit_offset(producers["early"], 10, id_="early") == 0
    assert ledger.commit_offset(producers["late"], 20, id_="late") == 0
    second = "late" if first == "early" else "early"
    for name in (first, second):
        assert ledger.end(producers[name], commit=True, id_=name).code == 0
        ledger.again(how)
    assert ledger.committed_offset() == (0, 20)


@again
@pytest.mark.parametrize("has_committed", [False, True])
def test_a_deletion_takes_what_is_pending_along(has_committed: bool, how: str) -> None:
    ledger, producer = opened()
    if has_committed:
        ledger.plain(5)
    assert ledger.commit_offset(producer, 10) == 0
    assert ledger.commit_offset(producer, 12, partition=1) == 0
    assert ledger.delete() == 0
    assert ledger.committed_offset(stable=True) == NONE, "and nothing is pending"
    ledger.again(how)
    assert ledger.committed_offset(partition=1)[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert ledger.end(producer, commit=True).code == 0
    ledger.again(how)
    assert ledger.committed_offset() == NONE
    assert ledger.committed_offset(partition=1) == (0, 12)


@again
def test_what_is_written_after_a_deletion_is_committed(how: str) -> None:
    ledger, producer = opened()
    assert ledger.commit_offset(producer, 10) == 0
    assert ledger.delete() == 0
    assert ledger.commit_offset(producer, 11) == 0
    ledger.again(how)
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.committed_offset() == (0, 11)


def test_a_deletion_leaves_nothing_of_plain_and_pending_offsets_before_it() -> None:
    ledger, producer = opened()
    assert ledger.commit_offset(producer, 10) == 0
    ledger.plain(20)
    assert ledger.delete() == 0
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.committed_offset() == NONE


@again
@pytest.mark.parametrize("has_committed", [False, True])
def test_a_group_is_deleted_with_what_is_pending_for_it(has_committed: bool, how: str) -> None:
    ledger, producer = opened()
    if has_committed:
        ledger.plain(5)
    assert ledger.commit_offset(producer, 10) == 0
    assert "g" in set(ledger.groups.names())
    assert ledger.delete_group() == 0
    ledger.again(how)
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.committed_offset() == NONE


def test_a_commit_that_no_one_waits_for_counts_by_when_it_came() -> None:
    for waits_first in (False, True):
        ledger, producer = opened()
        topic_id = ledger.store.topics.get("orders").id

        def put_aside(ledger: Offsets = ledger, topic_id: bytes = topic_id) -> None:
            ledger.store.progress.commit("g", [Commit(topic_id, 0, 20)], acknowledged=False)

        if waits_first:
            put_aside()
        assert ledger.commit_offset(producer, 10) == 0
        if not waits_first:
            put_aside()
        assert ledger.end(producer, commit=True).code == 0
        ledger.store.progress.flush()
        assert ledger.committed_offset() == (0, 10 if waits_first else 20)


def test_an_abort_leaves_what_is_committed() -> None:
    ledger, producer = opened()
    assert ledger.commit_offset(producer, 10) == 0
    ledger.plain(20)
    assert ledger.committed_offset()[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert ledger.end(producer, commit=False).code == 0
    assert ledger.committed_offset() == (0, 20)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_the_producer_and_its_transaction_are_looked_at_before_the_group(
    version: int, code: ErrorCode
) -> None:
    ledger, producer = opened()
    ledger.plain(1)
    fenced = ProducerIdAndEpoch(producer.id, producer.epoch - 1)

    def commit(by: ProducerIdAndEpoch) -> int:
        return ledger.commit_offset(by, 5, version=version, generation=3, member="nobody")

    assert commit(fenced) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit(ProducerIdAndEpoch(producer.id + 99, 0)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert commit(producer) == code


def test_an_unknown_partition_is_told_whoever_asks() -> None:
    ledger, producer = opened()
    fenced = ProducerIdAndEpoch(producer.id, producer.epoch - 1)
    code = ledger.commit_offset(fenced, 5, partition=99)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
