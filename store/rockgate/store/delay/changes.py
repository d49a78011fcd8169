"""Records of delayed entries in the log, and the due times in them.

docs/internals/delay.md specifies both. A due time is one number: a time of day, or the end of a
delay of known length. The lower bits are the due time in milliseconds since 1970; the upper bits
are the delay in minutes, rounded up, or 0 for a time of day. A time of day follows the wall clock
when that is set; a delay does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format

DELAY_TOPIC: Final = b"rmq_sys_rockgate_delay"
_WHAT: Final = f"Record of {DELAY_TOPIC.decode()}"
FORMAT: Final = 1
_PART: Final = 20_000
"""Items per change: far below the maximum size of a change."""

DUE_BITS: Final = 43
DUE_MAX: Final = (1 << DUE_BITS) - 1
"""The latest due time, in the year 2248; larger numbers contain a delay."""
MINUTE_MS: Final = 60_000
MINUTES_MAX: Final = (1 << 20) - 1
"""728 days; a longer delay is honoured, but its length is not stored."""


class DelayChangeKind(IntEnum):
    """The kind of a change."""

    SCHEDULE = 1
    DELIVERED = 2
    RECALLED = 3
    LOST = 4
    DROPPED = 5


class Scheduled(msgspec.Struct, array_like=True, frozen=True):
    """Delayed offsets of one queue, each with its due time."""

    topic_id: bytes
    queue_id: int
    waits: Sequence[tuple[int, int]]


class Ended(msgspec.Struct, array_like=True, frozen=True):
    """Offsets of one queue that are no longer delayed."""

    topic_id: bytes
    queue_id: int
    offsets: Sequence[int]


_encode = msgspec.msgpack.Encoder().encode
_scheduled = msgspec.msgpack.Decoder(list[Scheduled]).decode
_ended = msgspec.msgpack.Decoder(list[Ended]).decode
_KINDS: Final = {kind.value: kind for kind in DelayChangeKind}


def encode_schedule(
    topic_id: bytes, queue_id: int, waits: Sequence[tuple[int, int]]
) -> Iterator[bytes]:
    """Yield the changes that schedule offsets of a queue."""
    for at in range(0, len(waits), _PART):
        item = Scheduled(topic_id, queue_id, waits[at : at + _PART])
        yield bytes((FORMAT, DelayChangeKind.SCHEDULE)) + _encode([item])


def encode_ended(kind: DelayChangeKind, items: Iterable[Ended]) -> bytes:
    """Return the change that ends the delay of up to some thousand offsets."""
    return bytes((FORMAT, kind)) + _encode(list(items))


def decode(change: Change) -> tuple[DelayChangeKind, list[Any]]:
    """Return a change's kind and its items: Scheduled or Ended."""
    body = change.body
    if not body or body[0] != FORMAT:
        check_format(body[0] if body else 0, FORMAT, _WHAT, change.position)
    try:
        kind = _KINDS[body[1]]
        items = (_scheduled if kind is DelayChangeKind.SCHEDULE else _ended)(body[2:])
    except (IndexError, KeyError, msgspec.MsgspecError) as error:
        raise StoreCorrupt(_WHAT, change.position, str(error)) from error
    return kind, items


# Due times


def due_after(now_ms: int, delay_ms: int) -> int:
    """Return the due time of a delay that starts now."""
    minutes = min(max(1, -(-delay_ms // MINUTE_MS)), MINUTES_MAX)
    return minutes << DUE_BITS | min(max(0, now_ms + delay_ms), DUE_MAX)


def due_at(time_ms: int) -> int:
    """Return the due time for a time of day."""
    return min(max(0, time_ms), DUE_MAX)


def due_ms(when: int) -> int:
    """Return the due time in milliseconds since 1970."""
    return when & DUE_MAX


def moved(when: int, milliseconds: int) -> int:
    """Return the same delay, due this much later or, if negative, earlier."""
    due = min(max(0, (when & DUE_MAX) + milliseconds), DUE_MAX)
    return when >> DUE_BITS << DUE_BITS | due


def bounded(when: int, now_ms: int) -> int:
    """Return a delay that ends no later than its own length from now."""
    minutes = when >> DUE_BITS
    longest = now_ms + minutes * MINUTE_MS
    if minutes >= MINUTES_MAX or when & DUE_MAX <= longest:
        return when
    return minutes << DUE_BITS | longest
