"""The table of states in docs/internals/transactions.md, row by row, through the handlers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger, Outcome

from rockgate.gateway.kafka.transactions import coordinator
from rockgate.gateway.kafka.transactions.transaction import (
    EPOCH_MAX,
    ProducerIdAndEpoch,
    TransactionState,
)
from rockgate.protocol.kafka.errors import ErrorCode

NOBODY = ProducerIdAndEpoch(77, 0)


def ledger_in(
    state: TransactionState | None, *, is_v2: bool = True
) -> tuple[Ledger, ProducerIdAndEpoch]:
    """A ledger whose transactional id `tx` is in a state, and its producer."""
    ledger = Ledger()
    ledger.topic(partitions=4)
    if state is None:
        return ledger, NOBODY
    producer = ledger.init().producer
    if state is TransactionState.EMPTY:
        return ledger, producer
    assert ledger.add(producer, 0) == [0]
    assert ledger.write(producer, 0, b"a") == 0
    if state is TransactionState.ONGOING:
        return ledger, producer
    is_commit = state in (TransactionState.COMPLETE_COMMIT, TransactionState.PREPARE_COMMIT)
    ended = ledger.end(producer, commit=is_commit, version=5 if is_v2 else 4)
    assert ended.code == 0
    return ledger, ended.producer if is_v2 else producer


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes any transaction that wrote something a large one, which is ended in two steps."""
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 0)


def state_of(ledger: Ledger) -> TransactionState:
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    return transaction.state


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: ledger.add(NOBODY, 0)[0],
        lambda ledger: ledger.add_group(NOBODY),
        lambda ledger: ledger.commit_offset(NOBODY, 1),
        lambda ledger: ledger.end(NOBODY, commit=True).code,
        lambda ledger: ledger.write(NOBODY, 0, b"x"),
    ],
)
@pytest.mark.parametrize("state", [None, TransactionState.EMPTY, TransactionState.ONGOING])
def test_another_producer_id_is_an_invalid_mapping(
    state: TransactionState | None, ask: Callable[[Ledger], int]
) -> None:
    ledger, _ = ledger_in(state)
    assert ask(ledger) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda ledger, old: ledger.add(old, 0, version=3)[0], ErrorCode.PRODUCER_FENCED),
        (lambda ledger, old: ledger.add(old, 0, version=1)[0], ErrorCode.INVALID_PRODUCER_EPOCH),
        (lambda ledger, old: ledger.add_group(old, version=3), ErrorCode.PRODUCER_FENCED),
        (lambda ledger, old: ledger.add_group(old, version=1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (
            lambda ledger, old: ledger.end(old, commit=True, version=4).code,
            ErrorCode.PRODUCER_FENCED,
        ),
        (
            lambda ledger, old: ledger.end(old, commit=True, version=1).code,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ),
        (lambda ledger, old: ledger.commit_offset(old, 1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (lambda ledger, old: ledger.write(old, 0, b"x"), ErrorCode.INVALID_PRODUCER_EPOCH),
        (
            lambda ledger, old: ledger.write(old, 0, b"x", version=9),
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ),
        (lambda ledger, old: ledger.init(has=old).code, ErrorCode.PRODUCER_FENCED),
        (
            lambda ledger, old: ledger.init(has=old, version=3).code,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ),
    ],
)
def test_an_older_epoch_is_fenced_as_each_version_says_it(
    ask: Callable[[Ledger, ProducerIdAndEpoch], int], code: ErrorCode
) -> None:
    ledger, old = ledger_in(TransactionState.ONGOING)
    assert ledger.init().code == 0
    assert ask(ledger, old) == code


def test_a_new_id_gets_a_producer_and_the_next_init_the_next_epoch() -> None:
    ledger, _ = ledger_in(None)
    first = ledger.init()
    second = ledger.init()
    assert first == Outcome(0, ProducerIdAndEpoch(first.producer.id, 0))
    assert second == Outcome(0, ProducerIdAndEpoch(first.producer.id, 1))
    assert state_of(ledger) is TransactionState.EMPTY


def test_init_aborts_what_was_left_open_and_fences_whoever_left_it() -> None:
    ledger, old = ledger_in(TransactionState.ONGOING)
    new = ledger.init()
    assert new.code == 0
    assert new.producer.id == old.id
    assert new.producer.epoch > old.epoch + 1, "the epoch between is the marker's"
    assert ledger.read() == []
    assert ledger.bounds() == (2, 2)


def test_init_with_the_epoch_one_has_raises_it_and_said_again_answers_the_same() -> None:
    ledger, producer = ledger_in(TransactionState.EMPTY)
    raised = ledger.init(has=producer)
    again = ledger.init(has=producer)
    assert raised == again == Outcome(0, ProducerIdAndEpoch(producer.id, producer.epoch + 1))


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_limit_is_refused(timeout_ms: int) -> None:
    ledger, _ = ledger_in(None)
    assert ledger.init(timeout_ms=timeout_ms).code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_id_and_half_a_producer_are_invalid_requests() -> None:
    ledger, _ = ledger_in(None)
    assert ledger.init("").code == ErrorCode.INVALID_REQUEST
    assert ledger.init(has=ProducerIdAndEpoch(5, -1)).code == ErrorCode.INVALID_REQUEST
    assert ledger.init("x" * 20_000).code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize(
    "state",
    [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT],
)
def test_adding_begins_a_transaction(state: TransactionState, is_v2: bool) -> None:
    ledger, producer = ledger_in(state, is_v2=is_v2)
    assert ledger.add(producer, 1, 2) == [0, 0]
    assert state_of(ledger) is TransactionState.ONGOING


def test_beside_an_unknown_partition_none_is_added() -> None:
    ledger, producer = ledger_in(TransactionState.EMPTY)
    codes = ledger.add(producer, 0, 9)
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert state_of(ledger) is TransactionState.EMPTY


def test_adding_what_is_part_of_it_writes_nothing() -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    end = ledger.store.log.end
    assert ledger.add(producer, 0) == [0]
    assert ledger.store.log.end == end


@pytest.mark.parametrize(
    ("state", "commit", "version", "code"),
    [
        (TransactionState.EMPTY, True, 4, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, False, 4, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, True, 5, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, False, 5, ErrorCode.NONE),
        (TransactionState.ONGOING, True, 4, ErrorCode.NONE),
        (TransactionState.ONGOING, False, 4, ErrorCode.NONE),
        (TransactionState.ONGOING, True, 5, ErrorCode.NONE),
        (TransactionState.ONGOING, False, 5, ErrorCode.NONE),
        (TransactionState.COMPLETE_COMMIT, True, 5, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_COMMIT, False, 5, ErrorCode.NONE),
        (TransactionState.COMPLETE_ABORT, True, 5, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_ABORT, False, 5, ErrorCode.NONE),
    ],
)
def test_what_can_be_ended_from_which_state(
    state: TransactionState, commit: bool, version: int, code: ErrorCode
) -> None:
    ledger, producer = ledger_in(state)
    assert ledger.end(producer, commit=commit, version=version).code == code
    if not code:
        done = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        assert state_of(ledger) is done


@pytest.mark.parametrize("is_commit", [False, True])
def test_version_1_keeps_the_epoch_and_the_same_end_may_be_said_again(is_commit: bool) -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    for _ in range(2):
        assert ledger.end(producer, commit=is_commit, version=4).code == 0
    other = ledger.end(producer, commit=not is_commit, version=4)
    assert other.code == ErrorCode.INVALID_TXN_STATE
    assert ledger.bounds() == (2, 2), "one marker was written"


@pytest.mark.parametrize("is_commit", [False, True])
def test_version_2_raises_the_epoch_and_answers_it_again(is_commit: bool) -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    raised = Outcome(0, ProducerIdAndEpoch(producer.id, producer.epoch + 1))
    assert ledger.end(producer, commit=is_commit) == raised
    assert ledger.end(producer, commit=is_commit) == raised
    assert ledger.end(producer, commit=not is_commit).code == ErrorCode.INVALID_TXN_STATE
    assert ledger.bounds() == (2, 2)
    # The next transaction begins with the new epoch and from sequence 0.
    assert ledger.write(raised.producer, 0, b"b") == 0
    assert ledger.end(raised.producer, commit=True).code == 0
    assert ledger.read() == ([b"a", b"b"] if is_commit else [b"b"])


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("is_commit", [False, True])
def test_while_markers_are_being_written_everyone_waits(is_commit: bool) -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    ended = ledger.end(producer, commit=is_commit, version=4)
    assert ended.code == 0
    prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    assert state_of(ledger) is prepared
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert ledger.init().code == concurrent
    assert ledger.add(producer, 0) == [concurrent]
    assert ledger.add_group(producer) == concurrent
    assert ledger.commit_offset(producer, 1) == concurrent
    assert ledger.write(producer, 1, b"b") == concurrent
    assert ledger.write(producer, 1, b"b", version=9) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert ledger.end(producer, commit=is_commit, version=4).code == concurrent
    opposite = ledger.end(producer, commit=not is_commit, version=4)
    assert opposite.code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT]
)
def test_a_batch_for_a_partition_that_was_not_added(
    state: TransactionState, version: int, code: ErrorCode
) -> None:
    ledger, producer = ledger_in(state)
    assert ledger.write(producer, 0, b"late", partition=3, version=version) == code
    assert ledger.bounds(3) == ((0, 0) if code else (0, 1))


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.NONE),
    ],
)
def test_offsets_of_a_group_that_was_not_added(version: int, code: ErrorCode) -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    assert ledger.commit_offset(producer, 7, version=version) == code


def test_a_transactional_batch_needs_an_id_and_a_plain_one_may_not_be_in_between() -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    code = ledger.write(producer, 1, b"b", id_=None)
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    code = ledger.write(producer, 1, b"b", id_=None, is_transactional=False)
    assert code == ErrorCode.INVALID_TXN_STATE


def test_in_version_2_the_first_batch_of_a_producer_has_sequence_0() -> None:
    ledger, producer = ledger_in(TransactionState.EMPTY)
    code = ledger.write(producer, 5, b"b", version=12)
    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_sequence_of_an_ended_transaction_is_no_duplicate(
    is_commit: bool, is_killed: bool
) -> None:
    """A client that drops a message with an abort may give its sequence to the next one."""
    ledger, producer = ledger_in(TransactionState.ONGOING)
    assert ledger.write(producer, 0, b"a") == 0, "said again within the transaction it is one"
    assert ledger.end(producer, commit=is_commit, version=4).code == 0
    if is_killed:
        ledger.kill()
    assert ledger.add(producer, 0) == [0]
    code = ledger.write(producer, 0, b"another", version=11)
    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ledger.write(producer, 1, b"another", version=11) == 0
    assert ledger.end(producer, commit=True, version=4).code == 0
    assert ledger.read() == ([b"a", b"another"] if is_commit else [b"another"])


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    ledger, _ = ledger_in(None)
    producer = ledger.init().producer
    transaction = ledger.folds.transactions.find("tx")
    assert transaction is not None
    last = transaction.producer = ProducerIdAndEpoch(producer.id, EPOCH_MAX)
    assert ledger.write(last, 0, b"a") == 0
    ended = ledger.end(last, commit=True)
    assert ended.code == 0
    assert ended.producer.id != producer.id
    assert ended.producer.epoch == 0
    assert ledger.end(last, commit=True) == ended, "said again with the id before"
    assert ledger.write(last, 1, b"late") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ledger.read() == [b"a"]
    transaction.producer = ProducerIdAndEpoch(ended.producer.id, EPOCH_MAX)
    assert ledger.init().producer.epoch == 0


def test_verification_from_version_4_adds_nothing() -> None:
    from rockgate.protocol.kafka.keys import ApiKey
    from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
        AddPartitionsToTxnTransaction,
    )

    ledger, producer = ledger_in(TransactionState.ONGOING)
    for version, code in ((4, ErrorCode.INVALID_TXN_STATE), (5, ErrorCode.TRANSACTION_ABORTABLE)):
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id="tx",
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    verify_only=True,
                    topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0, 1, 9])],
                )
            ]
        )
        answer = ledger.send(ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
        results = answer.results_by_transaction[0].topic_results[0].results_by_partition
        codes = [each.partition_error_code for each in results]
        assert codes == [0, code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.usefixtures("large")
def test_behind_a_first_batch_that_came_during_the_last_end_no_other_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger, producer = ledger_in(TransactionState.ONGOING)
    assert ledger.end(producer, commit=True, version=4).code == 0
    early = ledger.write(producer, 0, b"0", partition=1, version=11)
    assert early == ErrorCode.NOT_ENOUGH_REPLICAS
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", 200)
    while ledger.coordinator.step():
        pass
    assert ledger.add(producer, 1) == [0]
    held = ledger.write(producer, 1, b"1", partition=1, version=11)
    assert held == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for sequence in (0, 1):
        assert ledger.write(producer, sequence, b"%d" % sequence, partition=1, version=11) == 0
    assert ledger.end(producer, commit=True, version=4).code == 0
    assert ledger.read(1) == [b"0", b"1"]
