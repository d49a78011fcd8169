"""Transactional ids have a bound: where they are made, and in whatever else names one."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger

from rockgate.gateway.kafka.handlers.init_producer_id import ID_SIZE_MAX
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rockgate.protocol.kafka.messages.describe_transactions import DescribeTransactionsRequest

UNKNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.topic("orders", 2)
    return ledger


@pytest.mark.parametrize("version", range(6))
def test_an_id_of_more_than_a_thousand_characters_is_an_invalid_request(
    ledger: Ledger, version: int
) -> None:
    end = ledger.store.log.end
    for size in (ID_SIZE_MAX + 1, 30_000):
        assert ledger.init("i" * size, version=version).code == ErrorCode.INVALID_REQUEST
    assert ledger.store.log.end == end and len(ledger.folds.transactions) == 0


def test_an_id_of_a_thousand_characters_does_all_that_a_short_one_does(ledger: Ledger) -> None:
    id_ = "é" * ID_SIZE_MAX
    code, producer = ledger.init(id_)
    assert code == ErrorCode.NONE
    assert ledger.add(producer, 0, id_=id_) == [ErrorCode.NONE]
    assert ledger.write(producer, 0, b"one", id_=id_) == ErrorCode.NONE
    assert ledger.add_group(producer, id_=id_) == ErrorCode.NONE
    assert ledger.commit_offset(producer, 7, id_=id_) == ErrorCode.NONE
    assert ledger.end(producer, commit=True, id_=id_).code == ErrorCode.NONE
    ledger.kill()
    assert ledger.read() == [b"one"]
    assert ledger.committed_offset() == (0, 7)


def test_whatever_else_names_a_longer_id_is_told_that_no_one_has_it(ledger: Ledger) -> None:
    id_, producer = "i" * (ID_SIZE_MAX + 1), ProducerIdAndEpoch(5, 0)
    end = ledger.store.log.end
    assert ledger.add(producer, 0, id_=id_) == [UNKNOWN]
    assert ledger.add_group(producer, id_=id_) == UNKNOWN
    assert ledger.commit_offset(producer, 7, id_=id_) == UNKNOWN
    assert ledger.end(producer, commit=True, id_=id_).code == UNKNOWN
    assert ledger.write(producer, 0, b"one", id_=id_) == UNKNOWN
    verifying = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=id_,
                producer_id=5,
                producer_epoch=0,
                topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
            )
        ]
    )
    [told] = ledger.send(ApiKey.ADD_PARTITIONS_TO_TXN, verifying, 4).results_by_transaction
    assert told.topic_results[0].results_by_partition[0].partition_error_code == UNKNOWN
    asked = DescribeTransactionsRequest(transactional_ids=[id_])
    [state] = ledger.send(ApiKey.DESCRIBE_TRANSACTIONS, asked, 0).transaction_states
    assert state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert ledger.store.log.end == end and len(ledger.folds.transactions) == 0
