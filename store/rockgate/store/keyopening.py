"""Opens the key index with a store and completes it from the log."""

from __future__ import annotations

import logging
from typing import Final

from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import Directory
from rockgate.store.keys.entrykeys import RecordKeys
from rockgate.store.keys.keyfile import Shape
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.keys.keywaiting import Run
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.segments import Segments
from rockgate.store.opening import replay

_log = logging.getLogger(__name__)

AT_ONCE_BYTES: Final = 64 << 20
"""How much log a start reads for the key index; more is read while the server serves."""


def key_shape(config: StoreConfig) -> Shape | None:
    """Return the shape of a file of the index; None if there is none."""
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
    """Bring the index up to the log's end, now if that is quick and a little at a time if not.

    Without room for a first file there is none until the next start, which builds it.
    """
    shape = key_shape(config)
    if shape is None:
        return None
    keys = KeyIndex(directory.child("index"), shape, record_keys, soon=soon)
    try:
        start = keys.recover(log_end=log.end, rebuild_from=log.start)
    except StoreFull as error:
        _log.error("key index is disabled in this run: %s", error)
        return None
    if log.end - start > AT_ONCE_BYTES:
        keys.missed_from = start
    else:
        replay(log, segments, start, flushed, [keys])
    return keys
