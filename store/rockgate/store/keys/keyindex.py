"""The key index: finds messages by unique key and by each of their KEYS, newest first.

docs/internals/key-index.md specifies it. The index is one row of files for all topics, each
covering a stretch of the log and named by its start. It is derived: what is lost or damaged is
put again from the log, and `recover` says from where.

Keys are put by the store's thread, straight into a mapped file: those of a message right behind
its append, when it has been answered. `prepare` and `flush` are steps of background threads. An
index that cannot grow never fails a message: it stops, remembers where (`missed_from`), and is
caught up from the log once there is room.

Only hashes are stored. `query` compares the real key, topic and time of whatever it finds by means
of the caller's loader, so that neither a collision nor a damaged file can give a wrong answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from rockgate.protocol.entry import TRANSACTION_ROLLBACK, Entry
from rockgate.store.errors import DiskFailed, StoreFull
from rockgate.store.files.interface import Directory
from rockgate.store.keys.entrykeys import (
    Load,
    RecordKeys,
    entry_keys,
    found_now,
    keys_of,
    keys_of_all,
    no_keys,
)
from rockgate.store.keys.keyfile import KeyFile, Shape
from rockgate.store.keys.keyrow import load_row, name_of
from rockgate.store.keys.pending_keys import BATCHED_MAX, FEW, WAITING_MAX, PendingKeys, Run, run

_log = logging.getLogger(__name__)

DEFAULT_SHAPE: Final = Shape(500_000, 2_000_000)
STEPS_MAX: Final = 100_000
"""How many entries a query walks over at most: about 50 ms."""
FOREVER_MS: Final = 2**63 - 1
PART_COUNT: Final = 2_000
"""Keys of one entry that are put at once: a few milliseconds' work."""

_PREPARED: Final = "next"

Missed = tuple[bytes, Sequence[bytes], int, int]
"""Topic, keys, position and store time of an entry, as `put` takes them."""


class KeyIndex:
    """The row of files, oldest first; the last one is written to."""

    wants_batches = False
    wants_messages = True

    def __init__(
        self,
        directory: Directory,
        shape: Shape = DEFAULT_SHAPE,
        record_keys: RecordKeys = no_keys,
        *,
        soon: Run = run,
    ) -> None:
        """An index without files. `soon` runs work in the next turn of the store's thread."""
        self._directory = directory
        self._shape = shape
        self.record_keys = record_keys
        # Replaced, never changed in place: the flushing thread walks it.
        self._row: list[KeyFile] = []
        self._prepared: KeyFile | None = None
        self._expired: list[KeyFile] = []
        self._has_new_names = False
        self._last = -1
        # Between the two background steps: neither closes what the other writes to.
        self._stepping = threading.Lock()
        self.durable_position = 0
        """Keys of everything in front of this position are on disk."""
        self.missed_from: int | None = None
        """From where on keys were not indexed for want of room; None if none were missed."""
        self._waiting = PendingKeys()
        self._is_settled_soon = False
        self._soon = soon
        self.later: Run = run
        """Runs work on the store's thread within some milliseconds; `Store.attach` may set it."""
        self.failure: Exception | None = None
        """The sync that failed. Later ones prove nothing, so the durable position stands still."""

    # Opening

    def recover(self, *, log_end: int, rebuild_from: int) -> int:
        """Open what is there, and return from where the log must be put again.

        Afterwards nothing in the index points at or behind `log_end`, and every key in front of
        the returned position, but not in front of `rebuild_from`, is in it.
        """
        row = load_row(self._directory, log_end, rebuild_from)
        if row:
            row[-1].cut(min(row[-1].position, log_end))
            row[-1].mapping.prefetch(0, row[-1].shape.entries_at)
        else:
            row = [self._create(rebuild_from)]
        self._row = row
        resume = max(row[-1].position, rebuild_from)
        row[-1].position = resume
        self._last = resume - 1
        self.durable_position = resume
        return resume

    def _create(self, start: int) -> KeyFile:
        shape = self._shape
        name = name_of(start, shape)
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            file = KeyFile(self._directory.allocate(name, shape.size), shape, start)
        else:
            self._directory.rename(_PREPARED, name)
            file = KeyFile(prepared.mapping, shape, start)
        self._has_new_names = True
        return file

    # Putting: the store's thread

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        """Index an entry of the log as the append of it did."""
        keys = found_now(entry_keys(view, entry, self.record_keys))
        self.put(entry.topic, keys, entry.position, entry.store_ms)

    def put_batch(self, topic: bytes, body: memoryview, position: int, store_ms: int) -> None:
        """Index a batch whose flag says so by the keys of its records.

        One that takes long, or has very many, is caught up with, as if there had been no room.
        """
        keys = self.record_keys(body)
        if not callable(keys) and len(keys) <= PART_COUNT:
            self.put(topic, keys, position, store_ms)
            return
        if self._waiting.count:
            self.settle()
        if self.missed_from is None and position > self._last:
            self.missed_from = position

    def put_entry(
        self, topic: bytes, properties: bytes, position: int, store_ms: int, sys_flag: int = 0
    ) -> None:
        """Index a message by all of its keys, unless it is the rollback of a transaction."""
        if sys_flag & TRANSACTION_ROLLBACK != TRANSACTION_ROLLBACK:
            self._waiting.add(topic, properties, position, store_ms)
            if self._waiting.count >= WAITING_MAX:
                self.settle()
            elif self._waiting.count == 1:
                self.later(self.settle)

    def put(self, topic: bytes, keys: Sequence[bytes], position: int, store_ms: int) -> None:
        """Index an entry of the log; one without keys, or indexed already, is passed over.

        Entries come in the order of the log. The store time may go back: a moved entry's does.
        """
        if self._waiting.count:
            self.settle()
        self._put_next(topic, keys, position, store_ms)

    def _put_next(self, topic: bytes, keys: Sequence[bytes], position: int, store_ms: int) -> None:
        if not keys or position <= self._last or self.missed_from is not None:
            return
        if self._put(topic, keys, position, store_ms):
            self._last = position

    def put_part(
        self, topic: bytes, keys: Sequence[bytes], position: int, store_ms: int, *, is_last: bool
    ) -> bool:
        """Index an entry that was missed by some of its keys; with the last ones it is in.

        Say whether there was room.
        """
        if not self._put(topic, keys, position, store_ms):
            return False
        if is_last:
            self._last = position
        return True

    def _put(self, topic: bytes, keys: Sequence[bytes], position: int, store_ms: int) -> bool:
        file = self._row[-1]
        file.position = position
        count = file.put(topic, keys, position, store_ms)
        # A message with more keys than a whole file holds is found by the first of them.
        while count < len(keys) and file.start != position:
            try:
                file = self._create(position)
            except (StoreFull, OSError) as error:
                _log.error("cannot index keys position=%d reason=%s", position, error)
                self.missed_from = position
                return False
            self._row = [*self._row, file]
            count += file.put(topic, keys[count:], position, store_ms)
        return True

    def put_messages(
        self,
        topic: bytes,
        properties: Sequence[bytes],
        positions: Sequence[int],
        store_ms: int,
    ) -> None:
        """Index messages that follow each other in the log, none of them a rollback.

        Not now but `soon`, when they have been answered; whoever needs them first settles that.
        """
        self._waiting.add_all(topic, properties, positions, store_ms)
        if self._waiting.count >= BATCHED_MAX:
            self.settle()
        elif not self._is_settled_soon:
            self._is_settled_soon = True
            self._soon(self._settle_some)

    def _settle_some(self) -> None:
        self._is_settled_soon = False
        self.settle(WAITING_MAX)
        if self._waiting.count and not self._is_settled_soon:
            self._is_settled_soon = True
            self._soon(self._settle_some)

    def settle(self, count_max: int | None = None) -> None:
        """Put what waits: all of it, or so many messages."""
        for topic, properties, positions, store_ms in self._waiting.take(count_max):
            if len(positions) < FEW:
                for each, position in zip(properties, positions, strict=True):
                    self._put_next(topic, keys_of(each), position, store_ms)
                continue
            keys, places = keys_of_all(properties, positions)
            file = self._row[-1]
            if (
                not keys
                or self.missed_from is not None
                or places[0] <= self._last
                or file.count + len(keys) > file.shape.entry_count
            ):
                for position, those in groupby(zip(keys, places, strict=True), itemgetter(1)):
                    self._put_next(topic, [key for key, _ in those], position, store_ms)
                continue
            file.position = places[0]
            file.put_all(topic, keys, places, store_ms)
            # The flushing thread reads this before the count: it may move when all are counted.
            file.position = self._last = places[-1]

    def reached(self, position: int) -> None:
        """Note that every entry in front of a position was put, as far as it had keys."""
        if self._waiting.count:
            self.settle()
        if self.missed_from is None and position > self._last:
            self._row[-1].position = position
            self._last = position - 1

    @property
    def has_room(self) -> bool:
        """Whether the next key has a place without a file to be made first."""
        return not self._row[-1].is_full or self._prepared is not None

    def catch_up(self, entries: Iterable[Missed], *, end: int, is_all: bool) -> None:
        """Put the entries of the log from `missed_from` to `end`, where the next call goes on.

        Meanwhile entries that are appended are passed over by `put`; `is_all` says that `end` is
        the log's, and from then on they are not. Does nothing while there is no room.
        """
        if self._waiting.count:
            self.settle()
        if self.missed_from is None or not self.has_room:
            return
        self.missed_from = None
        for topic, keys, position, store_ms in entries:
            self.put(topic, keys, position, store_ms)
            if self.missed_from is not None:
                return
        self.reached(end)
        if not is_all:
            self.missed_from = end

    def expire(self, below: int) -> None:
        """Let go of the files that hold nothing at or behind a position; `prepare` removes them."""
        row = self._row
        kept = 0
        while kept < len(row) - 1 and row[kept].position_at(row[kept].count - 1) < below:
            kept += 1
        self._row = row[kept:]
        self._expired.extend(row[:kept])

    # Asking

    def query(
        self,
        topic: bytes,
        key: bytes,
        *,
        load: Load,
        limit: int,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        steps_max: int = STEPS_MAX,
    ) -> list[int]:
        """Return the positions of messages with a key, the last appended first.

        Both ends of the time window count. A query gives up after `steps_max` entries and
        returns what it found: a key that all messages share is no key.
        """
        if self._waiting.count:
            self.settle()
        found: list[int] = []
        passed: set[int] = set()
        steps = 0
        for hit in self._walk(topic, key, begin_ms, end_ms):
            steps += 1
            if len(found) >= limit or steps > steps_max:
                break
            if hit is None or hit in passed:
                continue
            passed.add(hit)
            loaded = load(hit)
            if (
                loaded is not None
                and loaded.topic == topic
                and key in loaded.keys
                and begin_ms <= loaded.store_ms <= end_ms
            ):
                found.append(hit)
        return found

    def _walk(self, topic: bytes, key: bytes, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        for file in reversed(self._row):
            yield from file.find(topic, key, begin_ms, end_ms)

    @property
    def last_position(self) -> int:
        """The position of the newest entry in the index, -1 if there is none."""
        return max((file.position_at(file.count - 1) for file in self._filled()), default=-1)

    @property
    def last_store_ms(self) -> int:
        """The newest store time in the index, 0 if there is none."""
        return max((file.end_ms for file in self._filled()), default=0)

    def _filled(self) -> list[KeyFile]:
        return [file for file in self._row[-2:] if file.count > 1]

    # Steps of background threads

    def prepare(self) -> None:
        """Make the next file before it is needed, and remove those that expired."""
        with self._stepping:
            self._remove_expired()
        active = self._row[-1]
        is_due = active.count * 4 >= active.shape.entry_count * 3
        if self._prepared is not None or not (is_due or self.missed_from is not None):
            return
        try:
            mapping = self._directory.allocate(_PREPARED, self._shape.size)
        except (StoreFull, OSError) as error:
            _log.warning("cannot create key-index file reason=%s", error)
            return
        mapping.populate(0, self._shape.entries_at)
        self._prepared = KeyFile(mapping, self._shape, 0)

    def _remove_expired(self) -> None:
        while self._expired:
            file = self._expired.pop(0)
            file.mapping.close()
            self._directory.remove(name_of(file.start, file.shape))
            self._has_new_names = True

    def flush(self) -> None:
        """Make all that was put durable, and move the durable position."""
        with self._stepping:
            if self.failure is not None:
                return
            row = self._row
            try:
                if self._has_new_names:
                    self._has_new_names = False
                    self._directory.sync()
                # Oldest first: a file is never found whole without those in front of it.
                for file in row:
                    file.flush()
            except (OSError, DiskFailed) as error:
                self.failure = error
                raise
            self.durable_position = row[-1].durable_position

    def close(self) -> None:
        """Let go of the files; what was not flushed is put again at the next start."""
        self._waiting.take()
        for file in self._row:
            file.mapping.close()
        self._row = []
        if self._prepared is not None:
            self._prepared.mapping.close()
            self._prepared = None
