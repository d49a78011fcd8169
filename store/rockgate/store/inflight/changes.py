"""Records of messages in flight in the log. docs/internals/pop.md specifies them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format

INFLIGHT_TOPIC: Final = b"rmq_sys_rockgate_inflight"
SHARE_TOPIC: Final = b"rmq_sys_rockgate_share_state"
"""The same for share groups; docs/internals/groups-share.md says what is different."""
FORMAT: Final = 1
_WHAT: Final = f"Record of {INFLIGHT_TOPIC.decode()}"


class InFlightChangeKind(IntEnum):
    """The kind of a change. Part of the format on disk: never change a value."""

    ACQUIRE = 1
    EXTEND = 2
    END = 3
    RESET = 4
    DROP = 5
    FORGET = 6
    SHIFT = 7


class EndReason(IntEnum):
    """Why an offset is no longer in flight. Part of the format on disk: never change a value."""

    ACKNOWLEDGED = 1
    MOVED = 2
    DISCARDED = 3
    LOST = 4


class Acquire(msgspec.Struct, array_like=True, frozen=True):
    """Offsets were acquired, and everything before `end` was examined."""

    group: str
    topic_id: bytes
    queue_id: int
    first: int
    """Where the window starts if it does not exist yet."""
    end: int
    deadline_ms: int
    is_in_place: bool
    """Whether they are redelivered at the same offsets instead of moving to a retry topic."""
    runs: Sequence[int]


class Extend(msgspec.Struct, array_like=True, frozen=True):
    """The deadline of offsets changed."""

    group: str
    topic_id: bytes
    queue_id: int
    deadline_ms: int
    runs: Sequence[int]


class End(msgspec.Struct, array_like=True, frozen=True):
    """Offsets are no longer in flight."""

    group: str
    topic_id: bytes
    queue_id: int
    reason: EndReason
    runs: Sequence[int]


class Reset(msgspec.Struct, array_like=True, frozen=True):
    """A window starts at another offset, with nothing in flight."""

    group: str
    topic_id: bytes
    queue_id: int
    offset: int


class Drop(msgspec.Struct, array_like=True, frozen=True):
    """All windows of a group are removed."""

    group: str


class Forget(msgspec.Struct, array_like=True, frozen=True):
    """A window without anything in flight is removed: the committed offset says as much."""

    group: str
    topic_id: bytes
    queue_id: int


class Shift(msgspec.Struct, array_like=True, frozen=True):
    """All deadlines of a window moved with the clock."""

    group: str
    topic_id: bytes
    queue_id: int
    by_ms: int


_encode: Final = msgspec.msgpack.Encoder().encode
_TYPES: Final = {
    InFlightChangeKind.ACQUIRE: Acquire,
    InFlightChangeKind.EXTEND: Extend,
    InFlightChangeKind.END: End,
    InFlightChangeKind.RESET: Reset,
    InFlightChangeKind.DROP: Drop,
    InFlightChangeKind.FORGET: Forget,
    InFlightChangeKind.SHIFT: Shift,
}
_LEADS: Final = {type_: bytes((FORMAT, kind)) for kind, type_ in _TYPES.items()}
_DECODERS: Final[dict[int, msgspec.msgpack.Decoder[Any]]] = {
    int(kind): msgspec.msgpack.Decoder(type_) for kind, type_ in _TYPES.items()
}


def encode(change: Acquire | Extend | End | Reset | Drop | Forget | Shift) -> bytes:
    """Encode a change."""
    return _LEADS[type(change)] + _encode(change)


def decode(change: Change) -> Any:
    """Decode a change; StoreCorrupt if it cannot be decoded."""
    body = change.body
    if not body or body[0] != FORMAT:
        check_format(body[0] if body else 0, FORMAT, _WHAT, change.position)
    try:
        return _DECODERS[body[1]].decode(body[2:])
    except (KeyError, IndexError, msgspec.MsgspecError) as error:
        raise StoreCorrupt(_WHAT, change.position, f"{type(error).__name__} {error}") from error


def runs_of(offsets: Iterable[int]) -> list[int]:
    """Return ascending offsets as runs: first, count, first, count."""
    runs: list[int] = []
    following = -1
    for offset in offsets:
        if offset == following:
            runs[-1] += 1
        else:
            runs += (offset, 1)
        following = offset + 1
    return runs


def offsets_of(runs: Sequence[int]) -> Iterable[int]:
    """Return the offsets of runs."""
    if len(runs) == 2:
        return range(runs[0], runs[0] + runs[1])
    pairs = zip(runs[::2], runs[1::2], strict=False)
    return chain.from_iterable(range(first, first + count) for first, count in pairs)
