"""The key index: finds messages by unique key and by each of their KEYS, newest first.

docs/internals/key-index.md specifies it. The index is one sequence of files for all topics, each
covering a range of the log and named by its start. It is derived: lost or damaged keys are added
again from the log, and `recover` returns from which position.

The store's thread adds keys directly to a mapped file: those of a message soon after its append,
once its producer has the response. `prepare` and `flush` run on background threads. An index that
cannot grow never fails a message: it stops, records where (`missed_from`), and is caught up from
the log once there is space.

Only hashes are stored. `query` uses the caller's loader to compare the actual key, topic and time,
so neither a collision nor a damaged file can lead to a wrong result.
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
"""Maximum number of entries that a query visits: about 50 ms."""
FOREVER_MS: Final = 2**63 - 1
PART_COUNT: Final = 2_000
"""Keys of one entry that are added at once: a few milliseconds of work."""

_PREPARED: Final = "next"

Missed = tuple[bytes, Sequence[bytes], int, int]
"""Topic, keys, position and store time of an entry: the parameters of `put`."""


class KeyIndex:
    """The sequence of files, oldest first; the last one is written to."""

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
        """Without files. `soon` runs work in the next iteration of the store's thread."""
        self._directory = directory
        self._shape = shape
        self.record_keys = record_keys
        # Replaced, never changed in place: the flushing thread iterates over it.
        self._row: list[KeyFile] = []
        self._prepared: KeyFile | None = None
        self._expired: list[KeyFile] = []
        self._has_new_names = False
        self._last = -1
        # Held by each background step: neither closes what the other is writing to.
        self._stepping = threading.Lock()
        self.durable_position = 0
        """Keys of everything before this position are on disk."""
        self.missed_from: int | None = None
        """Position from which on keys are missing for lack of space; None if none are."""
        self._waiting = PendingKeys()
        self._is_settled_soon = False
        self._soon = soon
        self.later: Run = run
        """Runs work on the store's thread within some milliseconds; `Store.attach` may set it."""
        self.failure: Exception | None = None
        """The first failed sync. Later ones prove nothing, so the durable position stays."""

    # Opening

    def recover(self, *, log_end: int, rebuild_from: int) -> int:
        """Open the existing files, and return the position from which keys must be added again.

        Afterwards nothing in the index points at or after `log_end`, and every key between
        `rebuild_from` and the returned position is in it.
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
        """Index an entry of the log as its append did."""
        keys = found_now(entry_keys(view, entry, self.record_keys))
        self.put(entry.topic, keys, entry.position, entry.store_ms)

    def put_batch(self, topic: bytes, body: memoryview, position: int, store_ms: int) -> None:
        """Index a batch by the keys of its records; its flag says that they count.

        A batch that is slow to decode or has very many keys is left to the catch-up.
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
        """Index an entry of the log; skip it if it has no keys or is indexed already.

        Entries come in log order. Their store time may decrease, as that of a relocated entry does.
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
        """Index some keys of an entry that was missed; the last ones complete it.

        Say whether there was space.
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
        # A message with more keys than a whole file holds is only found by the first ones.
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
        """Index consecutive messages of the log, none of them a rollback.

        Deferred to `soon`, after their response; whatever needs the keys earlier calls `settle`.
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
        """Add the queued messages: all of them, or up to a maximum."""
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
            # The flushing thread reads this before the count, so it advances after all are counted.
            file.position = self._last = places[-1]

    def reached(self, position: int) -> None:
        """Record that every entry before a position was added, as far as it has keys."""
        if self._waiting.count:
            self.settle()
        if self.missed_from is None and position > self._last:
            self._row[-1].position = position
            self._last = position - 1

    @property
    def has_room(self) -> bool:
        """Whether the next key fits without creating a file first."""
        return not self._row[-1].is_full or self._prepared is not None

    def catch_up(self, entries: Iterable[Missed], *, end: int, is_all: bool) -> None:
        """Add the entries from `missed_from` to `end`, where the next call continues.

        Until then `put` skips entries that are appended; `is_all` means that `end` is the log's end
        and `put` indexes again. Does nothing while there is no space.
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
        """Drop the files with nothing at or after a position; `prepare` removes them."""
        row = self._row
        expired = 0
        while expired < len(row) - 1 and row[expired].position_at(row[expired].count - 1) < below:
            expired += 1
        self._row = row[expired:]
        self._expired.extend(row[:expired])

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
        """Return the positions of messages with a key, newest first.

        The time range is inclusive. A query stops after `steps_max` entries and returns what it
        found: a key that all messages share is of no use.
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
        """Create the next file before it is needed, and remove expired ones."""
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
        """Make all added keys durable, and advance the durable position."""
        with self._stepping:
            if self.failure is not None:
                return
            row = self._row
            try:
                if self._has_new_names:
                    self._has_new_names = False
                    self._directory.sync()
                # Oldest first: a file is never complete on disk without those before it.
                for file in row:
                    file.flush()
            except (OSError, DiskFailed) as error:
                self.failure = error
                raise
            self.durable_position = row[-1].durable_position

    def close(self) -> None:
        """Release the files; the next start adds again what was not flushed."""
        self._waiting.take()
        for file in self._row:
            file.mapping.close()
        self._row = []
        if self._prepared is not None:
            self._prepared.mapping.close()
            self._prepared = None
