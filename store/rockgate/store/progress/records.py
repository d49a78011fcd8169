"""Records of committed offsets: in memory, in the log, and in a snapshot.

docs/internals/state.md specifies it. A record is bytes everywhere:

    position 8 | commit ms 8 | offset 8 | expire ms 8 | leader epoch 4 | metadata, UTF-8

A change contains no position, because only the append assigns it; the fold prepends it. A change
AS_OF contains positions: those where the offsets were first written, before they counted. Numbers
are big-endian and positions never negative, so `record < position_key(p)` means that the record's
last change is before p, without decoding anything.

A million records are a million small byte strings and a few dicts: no object that the garbage
collector would have to visit, and slices are encoded without decoding any of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

from rockgate.store.errors import (
    EntryTooLarge,
    InvalidGroup,
    OffsetOutOfRange,
    StoreCorrupt,
    UnknownQueue,
)
from rockgate.store.state.fold import CHANGE_SIZE_MAX, Change, check_format
from rockgate.store.state.snapshot_slices import pack_array
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX

PROGRESS_TOPIC: Final = b"rmq_sys_rockgate_progress"
FORMAT: Final = 1

GROUP_SIZE_MAX: Final = 1_000
METADATA_SIZE_MAX: Final = 32767
OFFSET_MAX: Final = (1 << 63) - 1

_POSITION: Final = struct.Struct(">q")
_FIELDS: Final = struct.Struct(">qqqi")
POSITION_SIZE: Final = _POSITION.size
FIELDS_SIZE: Final = _FIELDS.size
_VALUE_AT: Final = 8
"""Where the client's values start, after the commit time, in a record without position."""


class ProgressRecordKind(IntEnum):
    """The kind of a change. Part of the format on disk: never change a value."""

    COMMIT = 1
    REMOVE = 2
    AS_OF = 3


class Commit(NamedTuple):
    """An offset to be committed."""

    topic_id: bytes
    queue_id: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_ms: int = -1


class Key(NamedTuple):
    """The key of a committed offset."""

    group: str
    topic_id: bytes
    queue_id: int


class Committed(NamedTuple):
    """A committed offset; -1 means no leader epoch, or no expiry time."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int


class Held(msgspec.Struct, array_like=True, gc=False):
    """A group's committed offsets in one topic: records by queue id.

    Its only container is a dict of atoms, so it cannot be part of a reference cycle.
    """

    group: str
    topic_id: bytes
    queues: dict[int, bytes]


class Removed(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """What is removed from a group: queues of a topic, a topic, or without a topic everything."""

    group: str
    topic_id: bytes | None = None
    queue_ids: list[int] | None = None


_encoder: Final = msgspec.msgpack.Encoder()
_held: Final = msgspec.msgpack.Decoder(list[Held])
_DECODERS: Final[dict[ProgressRecordKind, msgspec.msgpack.Decoder[Any]]] = {
    ProgressRecordKind.COMMIT: _held,
    ProgressRecordKind.AS_OF: _held,
    ProgressRecordKind.REMOVE: msgspec.msgpack.Decoder(list[Removed]),
}

# Records


def position_key(position: int) -> bytes:
    """Return the bytes with which a record of this position starts."""
    return _POSITION.pack(position)


def pack_record(commit: Commit, commit_ms: int) -> bytes:
    """Encode a commit as a record without a position."""
    metadata = commit.metadata.encode("utf-8", "surrogatepass")
    if len(metadata) > METADATA_SIZE_MAX:
        raise EntryTooLarge("Metadata of a committed offset", len(metadata), METADATA_SIZE_MAX)
    if not 0 <= commit.offset <= OFFSET_MAX:
        raise OffsetOutOfRange(commit.offset, 0, OFFSET_MAX)
    if not 0 <= commit.queue_id < QUEUE_COUNT_MAX:
        raise UnknownQueue(commit.topic_id.hex(), commit.queue_id)
    fields = _FIELDS.pack(commit_ms, commit.offset, commit.expire_ms, commit.leader_epoch)
    return fields + metadata


def unpack_record(record: bytes, at: int = POSITION_SIZE) -> Committed:
    """Decode a record, whose fields start at `at`."""
    commit_ms, offset, expire_ms, leader_epoch = _FIELDS.unpack_from(record, at)
    metadata = record[at + FIELDS_SIZE :]
    text = metadata.decode("utf-8", "surrogatepass") if metadata else ""
    return Committed(offset, leader_epoch, text, commit_ms, expire_ms)


def is_same_commit(record: bytes, bare: bytes) -> bool:
    """Say whether a record with a position has the same values as one without."""
    return record[POSITION_SIZE + _VALUE_AT :] == bare[_VALUE_AT:]


# Changes


def encode_commits(
    held_commits: Sequence[Held], kind: ProgressRecordKind = ProgressRecordKind.COMMIT
) -> Iterator[bytes]:
    """Yield the bodies for these records, each within the size of one change."""
    body = bytes((FORMAT, kind)) + _encoder.encode(held_commits)
    if len(body) <= CHANGE_SIZE_MAX:
        yield body
        return
    if len(held_commits) == 1:
        [held] = held_commits
        records = list(held.queues.items())
        middle = len(records) // 2
        assert middle, "one record is far smaller than a change may be"
        held_commits = [
            Held(held.group, held.topic_id, dict(half))
            for half in (records[:middle], records[middle:])
        ]
    middle = len(held_commits) // 2
    yield from encode_commits(held_commits[:middle], kind)
    yield from encode_commits(held_commits[middle:], kind)


def encode_removals(removals: Sequence[Removed]) -> Iterator[bytes]:
    """Yield the bodies for these removals, each within the size of one change."""
    body = bytes((FORMAT, ProgressRecordKind.REMOVE)) + _encoder.encode(removals)
    if len(body) <= CHANGE_SIZE_MAX:
        yield body
        return
    if len(removals) == 1:
        [removed] = removals
        queue_ids = removed.queue_ids or []
        middle = len(queue_ids) // 2
        assert middle, "one removal is far smaller than a change may be"
        removals = [
            Removed(removed.group, removed.topic_id, half)
            for half in (queue_ids[:middle], queue_ids[middle:])
        ]
    middle = len(removals) // 2
    yield from encode_removals(removals[:middle])
    yield from encode_removals(removals[middle:])


def decode(change: Change) -> tuple[ProgressRecordKind, list[Any]]:
    """Return the kind and the items of a change."""
    body = change.body
    what = f"Record of {PROGRESS_TOPIC.decode()}"
    check_format(body[0] if body else 0, FORMAT, what, change.position)
    try:
        kind = ProgressRecordKind(body[1] if len(body) > 1 else 0)
        return kind, _DECODERS[kind].decode(body[2:])
    except ValueError as error:
        raise StoreCorrupt(what, change.position, str(error)) from error


def check_group(group: str) -> None:
    """Reject a group name that does not fit into a change."""
    try:
        size = len(group.encode())
    except UnicodeEncodeError as error:
        raise InvalidGroup(f"Group name {group[:80]!r} is not valid UTF-8.") from error
    if size > GROUP_SIZE_MAX:
        raise InvalidGroup(f"Group name is {size:,} bytes; the maximum is {GROUP_SIZE_MAX:,}.")


# Slices of a snapshot


def encode_held(held: Held) -> bytes:
    """Encode records with their positions for a slice."""
    return _encoder.encode(held)


def pack_slice(held_commits: Sequence[bytes]) -> bytes:
    """Return a slice of encoded records."""
    return bytes((FORMAT,)) + pack_array(held_commits)


def unpack_slice(data: bytes) -> list[Held]:
    """Decode a slice."""
    what = "Snapshot of group progress"
    check_format(data[0] if data else 0, FORMAT, what)
    try:
        return _held.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(what, 0, str(error)) from error
