"""Keys and values of Kafka's internal topics, as its coordinators write them.

Each begins with its version. These are the versions that a broker before 4.1 writes, because tools
that read the topics know those best; Kafka's own formatters read them as well.

    __consumer_offsets   OffsetCommitKey v1, OffsetCommitValue v3 (v1 with a time to expire at),
                         GroupMetadataKey v2, GroupMetadataValue v3
    __transaction_state  TransactionLogKey v0, TransactionLogValue v0
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.transactions.transaction import Transaction, TransactionState
from rockgate.store.api.progress import Committed

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_OFFSET_EPOCH: Final = struct.Struct(">hqi")
_PRODUCER: Final = struct.Struct(">hqhib")
_TIMES: Final = struct.Struct(">qq")
_STATES: Final = {
    TransactionState.EMPTY: 0,
    TransactionState.ONGOING: 1,
    TransactionState.PREPARE_COMMIT: 2,
    TransactionState.PREPARE_ABORT: 3,
    TransactionState.COMPLETE_COMMIT: 4,
    TransactionState.COMPLETE_ABORT: 5,
}
_NULL_ARRAY: Final = _INT.pack(-1)


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of a committed offset."""
    return _SHORT.pack(1) + _text(group) + _text(topic) + _INT.pack(partition)


def offset_value(committed: Committed) -> bytes:
    """The value of a committed offset."""
    metadata = _text(committed.metadata)
    if committed.expire_ms >= 0:
        times = _TIMES.pack(committed.commit_ms, committed.expire_ms)
        return _SHORT.pack(1) + _LONG.pack(committed.offset) + metadata + times
    head = _OFFSET_EPOCH.pack(3, committed.offset, committed.leader_epoch)
    return head + metadata + _LONG.pack(committed.commit_ms)


def group_key(group: str) -> bytes:
    """The key of a classic group."""
    return _SHORT.pack(2) + _text(group)


def group_value(saved: SavedGroup, changed_ms: int) -> bytes:
    """The value of a classic group with its members."""
    parts = [
        _SHORT.pack(3) + _text(saved.protocol_type) + _INT.pack(saved.generation),
        _nullable(saved.protocol_name),
        _nullable(saved.leader),
        _LONG.pack(changed_ms),
        _INT.pack(len(saved.members)),
    ]
    for member in saved.members:
        subscription = dict(member.protocols).get(saved.protocol_name or "", b"")
        parts += [
            _text(member.member_id),
            _nullable(member.instance_id),
            _text(member.client_id),
            _text(member.client_host),
            _INT.pack(member.rebalance_ms),
            _INT.pack(member.session_ms),
            _blob(subscription),
            _blob(member.assignment),
        ]
    return b"".join(parts)


def transaction_key(id_: str) -> bytes:
    """The key of a transactional id."""
    return _SHORT.pack(0) + _text(id_)


def transaction_value(
    transaction: Transaction, partitions: Mapping[str, Iterable[int]] | None
) -> bytes:
    """The value of a transactional id; without partitions unless a transaction is open."""
    state = transaction.state
    producer = transaction.producer
    parts = [_PRODUCER.pack(0, producer.id, producer.epoch, transaction.timeout_ms, _STATES[state])]
    if state is TransactionState.EMPTY or partitions is None:
        parts.append(_NULL_ARRAY)
    else:
        parts.append(_INT.pack(len(partitions)))
        for topic, indexes in partitions.items():
            found = list(indexes)
            parts += [_text(topic), _INT.pack(len(found)), struct.pack(f">{len(found)}i", *found)]
    parts.append(_TIMES.pack(transaction.changed_ms, transaction.start_ms))
    return b"".join(parts)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return _SHORT.pack(len(data)) + data


def _nullable(value: str | None) -> bytes:
    return _SHORT.pack(-1) if value is None else _text(value)


def _blob(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value
