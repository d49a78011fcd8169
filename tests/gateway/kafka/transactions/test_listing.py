"""What administrators see of transactions, and what they can do about one that hangs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.patterns import compile_pattern
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.describe_transactions import DescribeTransactionsRequest
from rockgate.protocol.kafka.messages.list_transactions import ListTransactionsRequest
from rockgate.protocol.kafka.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def busy_ledger() -> tuple[Ledger, ProducerIdAndEpoch]:
    ledger = Ledger()
    ledger.topic(partitions=2)
    ledger.init("idle")
    producer = ledger.init("busy").producer
    ledger.write(producer, 0, b"a", id_="busy", partition=1)
    return ledger, producer


def describe(ledger: Ledger, *ids: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=[*ids])
    states: list[Any] = ledger.send(ApiKey.DESCRIBE_TRANSACTIONS, request, 0).transaction_states
    return states


def listed(ledger: Ledger, version: int = 2, **filters: Any) -> list[str]:
    answer = ledger.send(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(**filters), version)
    return sorted(each.transactional_id for each in answer.transaction_states)


def test_a_transaction_is_described_with_its_partitions() -> None:
    ledger, producer = busy_ledger()
    busy, idle, unknown, empty = describe(ledger, "busy", "idle", "nobody", "")
    assert (busy.transaction_state, busy.producer_id) == ("Ongoing", producer.id)
    assert busy.transaction_start_time_ms == ledger.clock.now_ms()
    assert [(each.topic, each.partitions) for each in busy.topics] == [("orders", [1])]
    assert (idle.transaction_state, idle.transaction_start_time_ms) == ("Empty", -1)
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


def test_with_a_duration_an_id_that_has_begun_nothing_is_not_listed() -> None:
    ledger, _ = busy_ledger()
    ledger.clock.advance(5000)
    assert listed(ledger, duration_filter=-1) == ["busy", "idle"]
    assert listed(ledger, duration_filter=0) == ["busy"], "Kafka lists idle, too"


def test_the_list_is_filtered_by_state_producer_age_and_name() -> None:
    ledger, producer = busy_ledger()
    assert listed(ledger) == ["busy", "idle"]
    assert listed(ledger, state_filters=["Ongoing"]) == ["busy"]
    assert listed(ledger, state_filters=["Nonsense"]) == []
    assert listed(ledger, producer_id_filters=[producer.id]) == ["busy"]
    assert listed(ledger, transactional_id_pattern="id.*") == ["idle"]
    assert listed(ledger, duration_filter=0) == []
    ledger.clock.advance(5000)
    assert listed(ledger, duration_filter=4000) == ["busy"]
    assert listed(ledger, duration_filter=6000) == []
    answer = ledger.send(
        ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(state_filters=["Nonsense"]), 0
    )
    assert answer.unknown_state_filters == ["Nonsense"]


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "x" * 4_097, r"(.)\1", "((a{100}){100}){100}"])
def test_a_pattern_that_is_not_re2_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_pattern(pattern)
    ledger, _ = busy_ledger()
    answer = ledger.send(
        ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(transactional_id_pattern=pattern), 2
    )
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(order|pay)-[0-9]+", "pay-12"),
        ("a?b{2,3}", "bbb"),
        ("", ""),
        (r"\pL+", "größe"),
        ("(a*)*b|(a|a)*c", "a" * 30_000 + "c"),
    ],
)
def test_ordinary_patterns_match_the_whole_name(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).fullmatch(text)
    assert not compile_pattern(pattern).fullmatch(text + "!")


def marking(
    producer: ProducerIdAndEpoch, partition: int, *, commit: bool = False, topic: str = "orders"
) -> WriteTxnMarkersRequest:
    named = WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
    marker = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        topics=[named],
    )
    return WriteTxnMarkersRequest(markers=[marker])


def write_marker(
    ledger: Ledger,
    producer: ProducerIdAndEpoch,
    partition: int,
    *,
    commit: bool = False,
    topic: str = "orders",
) -> int:
    request = marking(producer, partition, commit=commit, topic=topic)
    answer = ledger.send(ApiKey.WRITE_TXN_MARKERS, request, 1)
    return int(answer.markers[0].topics[0].partitions[0].error_code)


def test_an_administrator_aborts_a_transaction_that_hangs() -> None:
    ledger, producer = busy_ledger()
    assert ledger.bounds(1) == (0, 1)
    assert write_marker(ledger, producer, 1) == 0
    assert ledger.bounds(1) == (2, 2)
    assert ledger.read(1) == []
    assert write_marker(ledger, producer, 1) == 0
    assert ledger.bounds(1) == (2, 2), "there was nothing left to end"
    # The producer's own end finds nothing to mark in that partition.
    assert ledger.end(producer, commit=False, id_="busy").code == 0
    assert ledger.bounds(1) == (2, 2)


@pytest.mark.parametrize("accepts_all", [False, True])
def test_markers_come_from_this_machine_unless_it_is_set(accepts_all: bool) -> None:
    ledger, producer = busy_ledger()
    handler = ledger.handlers[ApiKey.WRITE_TXN_MARKERS]
    handler._accepts_all = accepts_all
    here, elsewhere = Address("10.0.0.1", 9092), Address("10.0.0.66", 50_000)
    peer = Peer(connection_id=1, local=here, remote=elsewhere)
    try:
        answer: Any = handler.handle(marking(producer, 1), Call(1, None, peer))
    except RequestError as error:
        answer = handler.refuse(marking(producer, 1), error.code)
    expected = ErrorCode.NONE if accepts_all else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.markers[0].topics[0].partitions[0].error_code == expected
    assert ledger.bounds(1) == ((2, 2) if accepts_all else (0, 1))


def test_a_marker_of_an_older_epoch_or_an_unknown_partition_is_refused() -> None:
    ledger, _ = busy_ledger()
    producer = ledger.init("busy").producer
    ledger.write(producer, 0, b"b", id_="busy", partition=1)
    older = ProducerIdAndEpoch(producer.id, producer.epoch - 1)
    assert write_marker(ledger, older, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write_marker(ledger, producer, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert write_marker(ledger, producer, 0, topic="x") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_ended_transaction_is_described_with_when_it_began_until_the_next_init() -> None:
    ledger, producer = busy_ledger()
    began_ms = ledger.clock.now_ms()
    ledger.clock.advance(1_000)
    ended = ledger.end(producer, commit=True, id_="busy").producer
    for _ in range(2):
        [found] = describe(ledger, "busy")
        assert (found.transaction_state, found.topics) == ("CompleteCommit", [])
        assert found.transaction_start_time_ms == began_ms
        ledger.kill()
    assert ledger.init("busy", has=ended).code == 0
    [found] = describe(ledger, "busy")
    assert (found.transaction_state, found.transaction_start_time_ms) == ("Empty", -1)


def test_a_begin_that_is_said_again_is_described_with_its_own_timeout() -> None:
    ledger = Ledger()
    producer = ledger.init().producer
    for timeout_ms in (40_000, 30_000):
        assert ledger.init(has=producer, timeout_ms=timeout_ms).code == 0
        [found] = describe(ledger, "tx")
        assert (found.transaction_state, found.producer_epoch) == ("Empty", producer.epoch + 1)
        assert found.transaction_timeout_ms == timeout_ms
