"""The way out: entries by offset, by position and by key."""

from __future__ import annotations

from rockgate.store.keys.entrykeys import Found
from rockgate.store.keys.keyindex import FOREVER_MS
from rockgate.store.keys.keyloading import no_batch_keys
from rockgate.store.read.lookup import Lookup
from rockgate.store.read.reader import BATCHES_MAX, Reader
from rockgate.store.read.slices import UNUSUAL, Alike, Slice
from rockgate.store.write.dispatch import EPOCH, MAX_MS, TOPIC_ID

__all__ = [
    "BATCHES_MAX",
    "EPOCH",
    "FOREVER_MS",
    "MAX_MS",
    "TOPIC_ID",
    "UNUSUAL",
    "Alike",
    "Found",
    "Lookup",
    "Reader",
    "Slice",
    "no_batch_keys",
]
