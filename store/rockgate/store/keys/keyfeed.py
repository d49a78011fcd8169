"""Catches up the key index after a full disk or a backlog.

Missed entries are read from the log and added a little at a time. A job finds the keys of a batch
that is slow to decode, and they are added in parts; the log may grow meanwhile, and the index
catches up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rockgate.protocol.entry import Entry
from rockgate.store.keys.entrykeys import Found, entry_keys
from rockgate.store.keys.keyindex import PART_COUNT, KeyIndex, Missed
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.workers import InlineJobs, Jobs


class _Part(NamedTuple):
    """An entry whose keys are added in parts, and how many of them are."""

    topic: bytes
    position: int
    end: int
    store_ms: int
    keys: Sequence[bytes]
    done: int = 0


class KeyFeed:
    """Feeds one index from the log. `step` belongs to the store's upkeep."""

    def __init__(
        self, log: CommitLog, keys: KeyIndex, jobs: Callable[[], Jobs] = InlineJobs
    ) -> None:
        self._log = log
        self._keys = keys
        self._jobs = jobs
        self._part: _Part | None = None
        self._is_finding = False

    def step(self, size_max: int) -> bool:
        """Index some of the missed entries; say whether more can be done now."""
        keys = self._keys
        if self._is_finding or keys.missed_from is None or not keys.has_room:
            # Without space nothing can be done, and asking again soon would not help.
            return False
        if self._part is not None:
            self._put(self._part)
        else:
            self._walk(max(keys.missed_from, self._log.start), size_max)
        return keys.missed_from is not None and not self._is_finding

    def _walk(self, start: int, size_max: int) -> None:
        """Add the entries of a range of the log; one with very many keys ends it."""
        missed: list[Missed] = []
        end, work = self._log.end, 0
        for view, entry in self._log.walk(start):
            if entry.position - start >= size_max or work >= PART_COUNT:
                end = entry.position
                break
            found = entry_keys(view, entry, self._keys.record_keys)
            if callable(found) or len(found) > PART_COUNT:
                end = entry.position
                if not missed:
                    self._begin(entry, found)
                break
            work += entry.offset_count
            if found:
                missed.append((entry.topic, found, entry.position, entry.store_ms))
        self._keys.catch_up(missed, end=end, is_all=end == self._log.end)

    def _begin(self, entry: Entry, found: Found) -> None:
        end = entry.position + entry.total_size
        whole = _Part(entry.topic, entry.position, end, entry.store_ms, ())
        if not callable(found):
            self._part = whole._replace(keys=found)
            return
        keys: list[bytes] = []

        def work() -> None:
            keys.extend(found())

        def done(failure: Exception | None) -> None:
            # A batch that cannot be decoded has no keys, so that it is not retried forever.
            self._is_finding = False
            self._part = whole._replace(keys=keys)

        self._is_finding = True
        self._jobs().submit(work, done)

    def _put(self, part: _Part) -> None:
        keys = part.keys[part.done : part.done + PART_COUNT]
        done = part.done + len(keys)
        is_last = done >= len(part.keys)
        is_put = self._keys.put_part(
            part.topic, keys, part.position, part.store_ms, is_last=is_last
        )
        self._part = part._replace(done=done) if is_put and not is_last else None
        if is_put and is_last:
            self._keys.catch_up((), end=part.end, is_all=part.end == self._log.end)
