"""Opens a store: the steps between a directory on disk and the first append.

docs/internals/recovery.md specifies it. The order matters, because each step depends on the
previous one: the end of the log, then the folds up to it, then the queues of the topics in the
folds, then the key index. If a step fails, the start fails with the file, the position and the
reason; nothing is served half loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from rockgate.protocol.entry import EntryError
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreCorrupt, StoreFull
from rockgate.store.files.interface import Directory
from rockgate.store.keys.entrykeys import RecordKeys
from rockgate.store.keys.keyfile import Shape
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.keys.pending_keys import Run
from rockgate.store.log.beginning import ABORT, Found
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.recovery import Rest, clear_rest, find_end, find_rest, write_again
from rockgate.store.log.segments import Segments
from rockgate.store.upkeep.checkpoint import CheckpointFile
from rockgate.store.write.dispatch import Derived, follow

_log = logging.getLogger(__name__)


def find_log(segments: Segments, checkpoint: CheckpointFile, directory: Directory) -> Found:
    """Load the segments and find the end of the log; the rest is saved and zeroed."""
    was_clean = ABORT not in directory.names()
    flushed = checkpoint.newest.flushed
    segments.load(None if checkpoint.is_blank else flushed)
    if checkpoint.is_blank:
        # Nothing is known to be flushed: the log is read from its first entry on.
        flushed = segments.start
    if not len(segments):
        if flushed:
            reason = f"the checkpoint covers the log up to {flushed}, but there is no log"
            raise StoreCorrupt(f"{directory.path}/commitlog", flushed, reason)
        segments.start_at(0)
    recovered = find_end(segments, flushed, flushed)
    checkpoint.make(flushed)
    end, saved_bytes = recovered.end, 0
    rest: Sequence[Rest] = ()
    if was_clean and end == flushed:
        # Nothing was ever written after it, so there is nothing to search.
        segments.cut_after(end)
    else:
        rest = find_rest(segments, end)
        saved_path = ""
        try:
            saved_bytes, saved_path = clear_rest(segments, end, directory.child("lost"), rest)
            rest = ()
        except StoreFull as error:
            if was_clean:
                raise  # the next start would not search for it
            _log.error("cannot save the rest of the log position=%d reason=%s", end, error)
        write_again(segments, flushed, end)
        if saved_bytes:
            _log.warning(
                "log was truncated position=%d reason=%s bytes=%d saved=%s",
                end,
                recovered.reason,
                saved_bytes,
                saved_path,
            )
    last_store_ms = max(recovered.last_store_ms, checkpoint.newest.last_store_ms)
    return Found(end, was_clean, end - flushed, saved_bytes, last_store_ms, rest)


def replay(
    log: CommitLog,
    segments: Segments,
    start: int,
    flushed: int,
    derived: Sequence[Derived],
    end: int | None = None,
) -> int:
    """Dispatch the entries from a position on, to another or the end; return their number.

    Entries before the flushed position are verified here for the first time; those after it were
    verified when the end was found.
    """
    count = 0
    limit = log.end if end is None else end
    batches = any(each.wants_batches for each in derived)
    messages = any(each.wants_messages for each in derived)
    parts = (
        log.walk(start, min(flushed, limit), batches=batches, messages=messages, checks=True),
        log.walk(max(start, flushed), limit, batches=batches, messages=messages),
    )
    for walk in parts:
        try:
            for view, entry in walk:
                follow(derived, view, entry)
                count += 1
        except EntryError as error:
            segment = segments.find(walk.position)
            path = segments.path(segment) if segment else "The log"
            raise StoreCorrupt(path, walk.position, error.reason) from error
    return count


_log = logging.getLogger(__name__)

AT_ONCE_BYTES: Final = 64 << 20
"""How much log a start reads for the key index; more is read while the server is running."""


def key_shape(config: StoreConfig) -> Shape | None:
    """Return the shape of key-index files; None if the index is disabled."""
    if not config.key_index:
        return None
    return Shape(config.key_index_slots, config.key_index_entries)


def open_keys(
    directory: Directory,
    config: StoreConfig,
    record_keys: RecordKeys,
    log: CommitLog,
    segments: Segments,
    flushed: int,
    soon: Run,
) -> KeyIndex | None:
    """Catch the index up to the log's end, at once if that is quick, otherwise in the background.

    Without space for a first file there is no index until the next start, which builds it.
    """
    shape = key_shape(config)
    if shape is None:
        return None
    keys = KeyIndex(directory.child("index"), shape, record_keys, soon=soon)
    try:
        start = keys.recover(log_end=log.end, rebuild_from=log.start)
    except StoreFull as error:
        _log.error("Key index is disabled until the next start: %s", error)
        return None
    if log.end - start > AT_ONCE_BYTES:
        keys.missed_from = start
    else:
        replay(log, segments, start, flushed, [keys])
    return keys
