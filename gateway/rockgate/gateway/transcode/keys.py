"""The keys by which the records of a batch are indexed, as those of a RocketMQ message.

A record's key counts if it is text: as a whole and, because RocketMQ splits KEYS at spaces, each of
its words. Headers never count. The result for one batch never changes, or a rebuilt index would
differ. A batch that exceeds the bounds is not found by any key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.transcode.dictionary import is_text, is_word
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import HEADER_SIZE, read_header
from rockgate.protocol.kafka.records.bounds import BOUNDS, LIGHT, Bounds, is_heavy
from rockgate.protocol.kafka.records.record import open_records
from rockgate.protocol.kafka.records.skimming import skim_keys
from rockgate.store.api.read import Found


class RecordKeys:
    """Returns the keys of a batch to the store: at once, or later if that takes long."""

    def __init__(self, threads: BatchThreads) -> None:
        self._threads = threads

    def __call__(self, body: memoryview) -> Found:
        """Return the keys, or a job that finds them outside the loop."""
        if not is_heavy(body):
            try:
                return record_keys(body, LIGHT)
            except BatchTooLarge:
                pass
        return partial(self._find, body)

    def _find(self, body: memoryview) -> Sequence[bytes]:
        try:
            return record_keys(body, self._threads.bounds)
        except BatchTooLarge as damage:
            self._threads.skip_keys(damage, crc=read_header(body).crc)
            return ()


def record_keys(body: memoryview, bounds: Bounds = BOUNDS) -> Sequence[bytes]:
    """Return the distinct keys of all records of a batch, in order.

    Of a damaged batch, those before the damage; BatchTooLarge if it is too large.
    """
    found: dict[bytes, None] = {}
    for _, key in _keys(body, bounds):
        if key not in found:
            found.update(dict.fromkeys(_words(key)))
    return list(found)


def indexes_of(body: memoryview, wanted: bytes, bounds: Bounds = BOUNDS) -> list[int]:
    """Return the offset deltas of the records with a key."""
    return [delta for delta, key in _keys(body, bounds) if key == wanted or wanted in _words(key)]


def _keys(body: memoryview, bounds: Bounds) -> Iterator[tuple[int, bytes]]:
    if len(body) < HEADER_SIZE:
        return
    try:
        header = read_header(body)
        if header.is_control:
            return
        for delta, key in skim_keys(open_records(body, header, bounds=bounds), header):
            if key is not None and (is_word(key) or is_text(key)):
                yield delta, key
    except BatchTooLarge:
        raise
    except MalformedBatch:
        return


def _words(key: bytes) -> list[bytes]:
    if b" " not in key:
        return [key]
    return [key, *(word for word in key.split(b" ") if word)]
