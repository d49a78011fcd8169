"""Entries with delayed records that are not scheduled yet: a fold of its own.

docs/internals/delay.md specifies it. A batch with few delayed records is appended together with its
schedule. One that belongs to a transaction must not be scheduled before the outcome, and one with
very many is scheduled a little at a time: these are held. An item is a whole entry, identified by
queue and first offset; only those who can decode it know how many of its offsets are delayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced
from rockgate.store.state.topicchanges import TOPICS_TOPIC, deleted_ids
from rockgate.store.state.topics import Topics

HELD_TOPIC: Final = b"rmq_sys_rockgate_delay_held"
NO_OWNER: Final = -1
"""Instead of an owner: there is no outcome to wait for."""
UNDECIDED: Final = -1
"""Instead of a time: the owner's outcome is not known yet."""
_FORMAT: Final = 1
_SLICE_ITEMS: Final = 1_000

Key = tuple[bytes, int]
"""Topic id and queue id."""


class HeldChangeKind(IntEnum):
    """The kind of a change."""

    HOLD = 1
    RELEASE = 2
    DROP = 3
    SCHEDULED = 4


class Hold(msgspec.Struct, array_like=True, frozen=True):
    """An entry was appended that is scheduled later."""

    topic_id: bytes
    queue_id: int
    base: int
    end: int
    owner: int
    from_ms: int
    """The base of its relative delays; UNDECIDED until the owner's outcome is known."""


class Decide(msgspec.Struct, array_like=True, frozen=True):
    """An owner's outcome for all its entries in a queue: released, or dropped."""

    topic_id: bytes
    queue_id: int
    owner: int
    from_ms: int


class Scheduled(msgspec.Struct, array_like=True, frozen=True):
    """This many of an entry's delayed offsets are scheduled."""

    topic_id: bytes
    queue_id: int
    base: int
    done_count: int
    is_last: bool


class Held(NamedTuple):
    """A held entry."""

    key: Key
    base: int
    end: int
    owner: int
    from_ms: int
    done_count: int
    position: int
    """Position of its last change."""


_encode = msgspec.msgpack.Encoder().encode
_decoders: Final[dict[HeldChangeKind, msgspec.msgpack.Decoder[Any]]] = {
    HeldChangeKind.HOLD: msgspec.msgpack.Decoder(Hold),
    HeldChangeKind.RELEASE: msgspec.msgpack.Decoder(Decide),
    HeldChangeKind.DROP: msgspec.msgpack.Decoder(Decide),
    HeldChangeKind.SCHEDULED: msgspec.msgpack.Decoder(Scheduled),
}
_slice = msgspec.msgpack.Decoder(list[Held]).decode


def encode(kind: HeldChangeKind, item: Hold | Decide | Scheduled) -> bytes:
    """Encode a change for the log."""
    return bytes((_FORMAT, kind)) + _encode(item)


class HeldEntries:
    """The fold of held entries."""

    name: Final = "delay held"
    topics: Final = frozenset((HELD_TOPIC, TOPICS_TOPIC))

    def __init__(self, topics: Topics, *, slice_items: int = _SLICE_ITEMS) -> None:
        self._find_topic = topics.find
        self._slice_items = slice_items
        self._roster: Roster[Held] = Roster()
        self._places: dict[Key, dict[int, int]] = {}
        """Slots of the roster, by queue and base offset."""
        self._ready: dict[tuple[Key, int], None] = {}
        """Items that may be scheduled, in the order of their release."""

    def __len__(self) -> int:
        return len(self._roster)

    # Asking

    def next_ready(self) -> Held | None:
        """Return the item to schedule next."""
        if not self._ready:
            return None
        key, base = next(iter(self._ready))
        return self._roster[self._places[key][base]]

    def put_last(self, item: Held) -> None:
        """Move an item that cannot be scheduled now behind the other ready ones."""
        place = item.key, item.base
        if place in self._ready:
            del self._ready[place]
            self._ready[place] = None

    def all(self) -> list[Held]:
        """Return every item, for inspection."""
        return [held for _, held in self._roster.walk() if held is not None]

    def decisions(
        self, keys: Iterable[Key], owner: int, *, is_commit: bool, now_ms: int
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that record an owner's outcome for its entries in some queues."""
        kind = HeldChangeKind.RELEASE if is_commit else HeldChangeKind.DROP
        return [
            (HELD_TOPIC, encode(kind, Decide(*key, owner, now_ms)))
            for key in keys
            if any(held.owner == owner for held in self._of(key))
        ]

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        """Say whether a range of offsets overlaps an item, which retention must not delete."""
        found = self._find_topic(topic.decode()) if self._places else None
        if found is None:
            return False
        places = self._places.get((found.id, queue_id), {})
        return first in places or any(
            held.base < end and first < held.end for held in self._of((found.id, queue_id))
        )

    def _of(self, key: Key) -> list[Held]:
        return [self._roster[place] for place in self._places.get(key, {}).values()]

    # Changing

    def apply(self, change: Change) -> None:
        """Apply a change."""
        if change.topic == TOPICS_TOPIC:
            self._forget_topics(deleted_ids(change))
            return
        body, what = change.body, f"Record of {HELD_TOPIC.decode()}"
        check_format(body[0] if body else 0, _FORMAT, what, change.position)
        try:
            kind = HeldChangeKind(body[1])
            item = _decoders[kind].decode(body[2:])
        except (IndexError, ValueError, msgspec.MsgspecError) as error:
            raise StoreCorrupt(what, change.position, str(error)) from error
        if kind is HeldChangeKind.HOLD:
            self._hold(item, change.position)
        elif kind is HeldChangeKind.SCHEDULED:
            self._scheduled(item, change.position)
        else:
            self._decided(item, change.position, is_release=kind is HeldChangeKind.RELEASE)

    def _hold(self, item: Hold, position: int) -> None:
        key = item.topic_id, item.queue_id
        if item.base not in self._places.get(key, ()):
            self._put(Held(key, item.base, item.end, item.owner, item.from_ms, 0, position))

    def _decided(self, item: Decide, position: int, *, is_release: bool) -> None:
        for held in self._of((item.topic_id, item.queue_id)):
            if held.owner != item.owner or held.position >= position:
                continue
            self._remove(held)
            if is_release:
                self._put(held._replace(owner=NO_OWNER, from_ms=item.from_ms, position=position))

    def _scheduled(self, item: Scheduled, position: int) -> None:
        key = item.topic_id, item.queue_id
        place = self._places.get(key, {}).get(item.base)
        held = None if place is None else self._roster[place]
        if held is None or place is None or held.position >= position:
            return
        if item.is_last:
            self._remove(held)
            return
        changed = held._replace(done_count=item.done_count, position=position)
        self._roster.remove(place)
        self._places[key][item.base] = self._roster.add(changed)

    def _put(self, held: Held) -> None:
        self._places.setdefault(held.key, {})[held.base] = self._roster.add(held)
        if held.owner == NO_OWNER:
            self._ready[held.key, held.base] = None

    def _remove(self, held: Held) -> None:
        places = self._places[held.key]
        self._roster.remove(places.pop(held.base))
        if not places:
            del self._places[held.key]
        self._ready.pop((held.key, held.base), None)

    def _forget_topics(self, topic_ids: Sequence[bytes]) -> None:
        gone = frozenset(topic_ids)
        for key in [key for key in self._places if key[0] in gone]:
            for held in self._of(key):
                self._remove(held)

    # The fold

    def snapshot(self) -> Iterator[bytes]:
        """Yield all items, about a thousand per slice."""
        for saved in sliced(self._encoded(), self._slice_items):
            yield bytes((_FORMAT,)) + pack_array(saved)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, held in self._roster.walk():
            item = None if held is None else _encode(held)
            yield 1, len(item or b""), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything with the contents of the slices."""
        self.clear()
        what = "Snapshot of held entries"
        found: dict[tuple[Key, int], Held] = {}
        for piece in slices:
            check_format(piece[0] if piece else 0, _FORMAT, what)
            try:
                for held in _slice(piece[1:]):
                    known = found.get((held.key, held.base))
                    if known is None or known.position < held.position:
                        found[held.key, held.base] = held
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
        for held in sorted(found.values(), key=lambda each: (each.position, each.base)):
            self._put(held)

    def clear(self) -> None:
        """Remove everything."""
        self._roster.clear()
        self._places.clear()
        self._ready.clear()
