"""Records of half messages in the log. docs/internals/half-messages.md lists their fields."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format

HALF_TOPIC: Final = b"rmq_sys_rockgate_half"
FORMAT: Final = 1


class HalfChangeKind(IntEnum):
    """What a change does. Part of the format on disk: never change a value."""

    PREPARED = 1
    CHECKED = 2
    DECIDED = 3


class Outcome(IntEnum):
    """How a half message ended. Part of the format on disk: never change a value."""

    COMMITTED = 1
    ROLLED_BACK = 2
    GIVEN_UP = 3


class Prepared(msgspec.Struct, array_like=True, frozen=True):
    """A half message was taken."""

    offset: int
    group: str
    immune_ms: int


class Checked(msgspec.Struct, array_like=True, frozen=True):
    """A producer was asked about one."""

    offset: int


class Decided(msgspec.Struct, array_like=True, frozen=True):
    """One has ended."""

    offset: int
    outcome: Outcome


_encode: Final = msgspec.msgpack.Encoder().encode
_DECODERS: Final[dict[int, msgspec.msgpack.Decoder[Any]]] = {
    HalfChangeKind.PREPARED: msgspec.msgpack.Decoder(Prepared),
    HalfChangeKind.CHECKED: msgspec.msgpack.Decoder(Checked),
    HalfChangeKind.DECIDED: msgspec.msgpack.Decoder(Decided),
}
_LEADS: Final = {
    Prepared: bytes((FORMAT, HalfChangeKind.PREPARED)),
    Checked: bytes((FORMAT, HalfChangeKind.CHECKED)),
    Decided: bytes((FORMAT, HalfChangeKind.DECIDED)),
}


def encode(change: Prepared | Checked | Decided) -> bytes:
    """Return a change's body."""
    return _LEADS[type(change)] + _encode(change)


def decode(change: Change) -> Any:
    """Return what an entry says; StoreCorrupt if it cannot be read."""
    what, body = "record of half messages", change.body
    check_format(body[0] if body else 0, FORMAT, what, change.position)
    try:
        return _DECODERS[body[1]].decode(body[2:])
    except (KeyError, IndexError, msgspec.MsgspecError) as error:
        raise StoreCorrupt(what, change.position, f"{type(error).__name__} {error}") from error
