"""The store's settings; the string under each is its line in docs/reference/operations.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

_MIB = 1 << 20
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """The log: segments, flushing, snapshots, retention and indexes."""

    segment_bytes: int = 256 * _MIB
    """Size of a log segment; fixed when the data directory is created."""

    populate_ahead_bytes: int = 32 * _MIB
    """How far ahead of the log end pages are prefaulted, so that appends take no page fault."""

    cold_bytes: int = 128 * _MIB
    """Distance from the log end up to which reads are assumed to hit the page cache; older reads
    use a thread."""

    flush: Literal["async", "sync"] = "async"
    """`sync` acknowledges after an fsync shared by concurrent producers; `async` acknowledges at
    once."""

    flush_interval_ms: int = 500
    """With `flush=async`: interval between checks for dirty pages."""

    flush_pages_min: int = 4
    """With `flush=async`: minimum number of dirty pages to flush."""

    flush_thorough_ms: int = 10_000
    """With `flush=async`: interval after which everything is flushed, regardless of
    `flush_pages_min`."""

    flush_timeout_ms: int = 5_000
    """With `flush=sync`: how long an acknowledgement waits for its fsync before it fails."""

    checkpoint_interval_ms: int = 10_000
    """Interval between checkpoints of the flushed position and the queue ends while the log grows.
    """

    checkpoint_bytes: int = 32 * _MIB
    """Log growth that triggers a checkpoint; recovery after a crash scans about this much."""

    upkeep_gap_ms: int = 1_000
    """Minimum interval between checkpoints or snapshots triggered by log growth."""

    snapshot_interval_ms: int = 60_000
    """Interval between snapshots of the state while the log grows."""

    snapshot_bytes: int = 32 * _MIB
    """Log growth that triggers a snapshot."""

    retention_ms: int = field(
        default=7 * 24 * 3_600_000, metadata={"minimum": -1, "maximum": _LONG_MAX}
    )
    """Retention time of a topic; the default of `retention.ms`, -1 for unlimited."""

    retention_bytes: int = field(default=-1, metadata={"minimum": -1, "maximum": _LONG_MAX})
    """Retention size of a queue; the default of `retention.bytes`, -1 for unlimited."""

    retention_interval_ms: int = 60_000
    """Interval between checks for segments to delete."""

    compaction: bool = True
    """Whether topics with `cleanup.policy=compact` are compacted."""

    compaction_interval_ms: int = field(
        default=15_000, metadata={"minimum": 0, "maximum": _LONG_MAX}
    )
    """Interval between searches for queues to compact."""

    compaction_bytes_per_second: int = field(
        default=32 * _MIB, metadata={"minimum": 1_024, "maximum": _LONG_MAX}
    )
    """How much compaction reads and writes per second at most."""

    disk_used_percent_max: int = 90
    """Disk usage above which writes are rejected; reads continue."""

    disk_forced_cleanup: bool = False
    """Delete the oldest segments above `disk_used_percent_max`, even if they have not expired."""

    key_index: bool = True
    """Index messages by unique key and KEYS."""

    key_index_slots: int = 500_000
    """Number of hash slots per key-index file."""

    key_index_entries: int = 2_000_000
    """Number of keys per key-index file."""
