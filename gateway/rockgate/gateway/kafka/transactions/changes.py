"""Changes of transactional ids, as log entries. docs/internals/transactions.md has their fields."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, TypeVar

import msgspec

from rockgate.gateway.kafka.transactions.transaction import (
    Ending,
    Offset,
    Partition,
    ProducerIdAndEpoch,
)
from rockgate.store.api.folds import CHANGE_SIZE_MAX, Change, check_format
from rockgate.store.api.progress import Removed
from rockgate.store.errors import StoreCorrupt

TOPIC: Final = b"rmq_sys_rockgate_transactions"
FORMAT: Final = 1
_PART_SIZE: Final = CHANGE_SIZE_MAX // 2


class TransactionChangeKind(IntEnum):
    """What a change does. Part of the format on disk: never change a value."""

    INIT = 1
    ADD = 2
    OFFSETS = 3
    PREPARE = 4
    COMPLETE = 5
    REMOVE = 6
    SETTLE = 7
    DROP = 8


class Init(msgspec.Struct, array_like=True, frozen=True):
    """A producer was initialized, or initialized again, with a transactional id."""

    id: str
    producer: ProducerIdAndEpoch
    last: ProducerIdAndEpoch
    timeout_ms: int


class Add(msgspec.Struct, array_like=True, frozen=True):
    """Partitions and groups were added to its transaction."""

    id: str
    partitions: list[tuple[bytes, list[int]]]
    groups: list[str]


class Offsets(msgspec.Struct, array_like=True, frozen=True):
    """Offsets of a group that will be committed with it."""

    id: str
    group: str
    offsets: list[Offset]


class End(msgspec.Struct, array_like=True, frozen=True):
    """It was decided (PREPARE), or has ended (COMPLETE)."""

    id: str
    ending: Ending


class Remove(msgspec.Struct, array_like=True, frozen=True):
    """Transactional ids were removed."""

    ids: list[str]


class Settle(msgspec.Struct, array_like=True, frozen=True):
    """Pending offsets were committed, or dropped, before the rest of a large transaction."""

    id: str
    group: str
    partitions: list[tuple[bytes, list[int]]]


class Drop(msgspec.Struct, array_like=True, frozen=True):
    """Offsets of groups were deleted: what is pending for them is removed as well."""

    removals: list[Removed]


AnyChange = Init | Add | Offsets | End | Remove | Settle | Drop

_encoder: Final = msgspec.msgpack.Encoder()
_DECODERS: Final[dict[TransactionChangeKind, msgspec.msgpack.Decoder[Any]]] = {
    TransactionChangeKind.INIT: msgspec.msgpack.Decoder(Init),
    TransactionChangeKind.ADD: msgspec.msgpack.Decoder(Add),
    TransactionChangeKind.OFFSETS: msgspec.msgpack.Decoder(Offsets),
    TransactionChangeKind.PREPARE: msgspec.msgpack.Decoder(End),
    TransactionChangeKind.COMPLETE: msgspec.msgpack.Decoder(End),
    TransactionChangeKind.REMOVE: msgspec.msgpack.Decoder(Remove),
    TransactionChangeKind.SETTLE: msgspec.msgpack.Decoder(Settle),
    TransactionChangeKind.DROP: msgspec.msgpack.Decoder(Drop),
}
T = TypeVar("T")


def encode(kind: TransactionChangeKind, change: AnyChange) -> bytes:
    """Return a change's body."""
    return bytes((FORMAT, kind)) + _encoder.encode(change)


def decode(change: Change) -> tuple[TransactionChangeKind, Any]:
    """Return the change of an entry; StoreCorrupt if it cannot be decoded."""
    what, body = "Transaction record", change.body
    check_format(body[0] if body else 0, FORMAT, what, change.position)
    try:
        kind = TransactionChangeKind(body[1])
        return kind, _DECODERS[kind].decode(body[2:])
    except (ValueError, IndexError, msgspec.MsgspecError) as error:
        raise StoreCorrupt(what, change.position, str(error)) from error


def in_parts(items: list[T], size_each: int) -> list[list[T]]:
    """Split a list so that no part makes a change too large."""
    count = max(1, _PART_SIZE // size_each)
    return [items[at : at + count] for at in range(0, len(items), count)]


def by_topic(partitions: Iterable[Partition]) -> list[tuple[bytes, list[int]]]:
    """Return partitions as changes list them: queues by topic."""
    found: dict[bytes, list[int]] = {}
    for topic_id, queue_id in partitions:
        found.setdefault(topic_id, []).append(queue_id)
    return list(found.items())
