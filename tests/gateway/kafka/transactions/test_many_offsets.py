"""Transactions with more offsets than fit one append: bounded, settled in parts, never stuck."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from tests.gateway.kafka.transactions import ledger as ledgers
from tests.gateway.kafka.transactions.ledger import Ledger
from tests.world import CONFIG

from rockgate.gateway.kafka.handlers import txn_offset_commit
from rockgate.gateway.kafka.transactions import changes, coordinator
from rockgate.gateway.kafka.transactions.changes import TOPIC, TransactionChangeKind
from rockgate.gateway.kafka.transactions.pending import FIXED_SIZE
from rockgate.gateway.kafka.transactions.transaction import (
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

COUNT = 300
METADATA = "m" * 4096
"""The longest that a client may keep; three hundred of them are more than a segment."""


def commit_many(
    ledger: Ledger,
    producer: ProducerIdAndEpoch,
    *,
    first: int = 0,
    count: int = COUNT,
    metadata: str = METADATA,
    id_: str = "tx",
    group: str = "g",
    version: int = 5,
) -> list[int]:
    """The codes of a request for many partitions."""
    request = TxnOffsetCommitRequest(
        transactional_id=id_,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id=-1,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=partition,
                        committed_metadata=metadata,
                    )
                    for partition in range(first, first + count)
                ],
            )
        ],
    )
    answer = ledger.send(ApiKey.TXN_OFFSET_COMMIT, request, version)
    return [each.error_code for each in answer.topics[0].partitions]


def prepared(*, commit: bool = True) -> Ledger:
    """A ledger whose transaction was decided, and has more offsets than a segment takes."""
    ledger = Ledger()
    ledger.topic(partitions=COUNT)
    producer = ledger.init().producer
    assert ledger.write(producer, 0, b"a") == 0
    for first in range(0, COUNT, 100):
        assert commit_many(ledger, producer, first=first, count=100) == [0] * 100
    assert transaction_of(ledger).offsets_size > CONFIG.segment_bytes
    assert ledger.end(producer, commit=commit).code == 0
    return ledger


def transaction_of(ledger: Ledger) -> Transaction:
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    return transaction


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize("steps_per_life", [1, 5, 1_000])
def test_more_offsets_than_a_segment_takes_are_settled_in_parts_over_kills(
    steps_per_life: int, is_commit: bool
) -> None:
    ledger = prepared(commit=is_commit)
    done = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    lives = 0
    while transaction_of(ledger).state is not done:
        assert lives < 100, "each life settles some"
        for _ in range(steps_per_life):
            ledger.coordinator.step()
        ledger.kill()
        lives += 1
    assert ledger.folds.transactions.pending.size == 0
    assert ledger.bounds() == (2, 2)
    for partition in (0, 1, COUNT // 2, COUNT - 1):
        expected = partition if is_commit else -1
        assert ledger.committed_offset(partition=partition) == (0, expected)
    assert ledger.init().code == 0


def test_a_step_takes_less_than_fifty_milliseconds_and_writes_a_bounded_group() -> None:
    slowest_s = []
    for _ in range(3):
        ledger = prepared()
        spent_s = []
        while transaction_of(ledger).state is TransactionState.PREPARE_COMMIT:
            begin, end = time.thread_time(), ledger.store.log.end
            ledger.coordinator.step()
            spent_s.append(time.thread_time() - begin)
            assert ledger.store.log.end - end < 2 * coordinator.OFFSETS_SIZE_PER_GROUP
        slowest_s.append(max(spent_s))
    assert min(slowest_s) < 0.05


def test_one_that_an_earlier_version_left_prepared_is_completed() -> None:
    """That one could not be appended, and was retried forever."""
    ledger = Ledger()
    ledger.topic(partitions=COUNT)
    producer = ledger.init().producer
    for first in range(0, COUNT, 100):
        assert commit_many(ledger, producer, first=first, count=100) == [0] * 100
    transaction = transaction_of(ledger)
    ending = transaction.ending_by(True, is_v2=True)
    body = changes.encode(TransactionChangeKind.PREPARE, changes.End("tx", ending))
    ledger.store.appender.append_state(TOPIC, body)
    ledger.kill()
    assert transaction_of(ledger).state is TransactionState.PREPARE_COMMIT
    while ledger.coordinator.step():
        pass
    assert transaction_of(ledger).state is TransactionState.COMPLETE_COMMIT
    assert ledger.committed_offset(partition=COUNT - 1) == (0, COUNT - 1)


def test_offsets_that_are_deleted_while_others_are_settled_stay_deleted() -> None:
    ledger = prepared()
    ledger.coordinator.step()
    first, last = ledger.committed_offset(), ledger.committed_offset(partition=COUNT - 1)
    assert (first, last[0]) == ((0, 0), ErrorCode.UNSTABLE_OFFSET_COMMIT)
    ledger.store.progress.delete_groups(["g"])
    while ledger.coordinator.step():
        pass
    assert ledger.committed_offset() == (0, -1)
    assert ledger.committed_offset(partition=COUNT - 1) == (0, -1)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, ErrorCode.INVALID_COMMIT_OFFSET_SIZE), (5, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_one_transaction_may_have_its_share_pending_and_no_more(
    monkeypatch: pytest.MonkeyPatch, version: int, code: ErrorCode
) -> None:
    monkeypatch.setattr(ledgers, "OFFSETS_BYTES_MAX", 100 * FIXED_SIZE * coordinator.OFFSETS_SHARE)
    ledger = Ledger()
    ledger.topic(partitions=200)
    producer = ledger.init().producer
    assert ledger.add_group(producer) == 0
    taken = commit_many(ledger, producer, count=100, metadata="", version=version)
    assert taken == [0] * 100
    refused = commit_many(ledger, producer, first=100, count=1, metadata="", version=version)
    assert refused == [code]
    assert ledger.end(producer, commit=False).code == 0
    other = ledger.init().producer
    assert commit_many(ledger, other, count=100, metadata="") == [0] * 100, "the abort freed it"


def test_all_transactions_together_have_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "OFFSETS_BYTES_MAX", 800 * FIXED_SIZE)
    ledger = Ledger()
    ledger.topic(partitions=100)
    producers = [ledger.init(f"tx-{n}").producer for n in range(9)]
    codes = [
        commit_many(ledger, producer, count=100, metadata="", id_=f"tx-{n}")[0]
        for n, producer in enumerate(producers)
    ]
    assert codes == [0] * 8 + [ErrorCode.TRANSACTION_ABORTABLE]
    assert ledger.end(producers[0], commit=True, id_="tx-0").code == 0
    assert commit_many(ledger, producers[8], count=100, metadata="", id_="tx-8")[0] == 0


async def test_a_large_request_is_kept_in_slices_with_others_in_between() -> None:
    ledger = Ledger()
    count = 3 * txn_offset_commit.SLICE_COUNT + 1
    ledger.topic(partitions=count)
    producer = ledger.init().producer
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id=-1,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=at, committed_offset=at)
                    for at in range(count)
                ],
            )
            for name in ("unknown", "orders")
        ],
    )
    handled = asyncio.ensure_future(ledger.send(ApiKey.TXN_OFFSET_COMMIT, request, 5))
    sizes = set()
    while not handled.done():
        await asyncio.sleep(0)
        sizes.add(ledger.folds.transactions.pending.size)
    assert len(sizes) > 3, "slice by slice"
    unknown, known = handled.result().topics
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in unknown.partitions] == [missing] * count
    assert [each.error_code for each in known.partitions] == [0] * count
    assert [each.partition_index for each in known.partitions] == list(range(count))
    assert ledger.end(producer, commit=True).code == 0
    while ledger.coordinator.step():
        pass
    assert ledger.committed_offset(partition=count - 1) == (0, count - 1)


async def test_long_metadata_makes_slices_shorter() -> None:
    ledger = Ledger()
    ledger.topic(partitions=COUNT)
    producer = ledger.init().producer
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id=-1,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=at, committed_offset=at, committed_metadata=METADATA
                    )
                    for at in range(COUNT)
                ],
            )
        ],
    )
    handled = asyncio.ensure_future(ledger.send(ApiKey.TXN_OFFSET_COMMIT, request, 5))
    sizes = [0]
    while not handled.done():
        await asyncio.sleep(0)
        sizes.append(ledger.folds.transactions.pending.size)
    assert max(later - size for size, later in itertools.pairwise(sizes)) < 512 << 10
    assert {each.error_code for each in handled.result().topics[0].partitions} == {0}
