"""The store's settings; the string under each is its line in docs/reference/operations.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """How the log is laid out, flushed, indexed and kept."""

    segment_bytes: int = 256 * _MIB
    """Size of one commit-log file; fixed for the life of a data directory."""

    populate_ahead_bytes: int = 32 * _MIB
    """How far ahead of the writer pages are made ready, so that an append takes no page fault."""

    cold_bytes: int = 128 * _MIB
    """How far behind the end the log is taken to be in memory; a thread fetches what is beyond."""

    flush: Literal["async", "sync"] = "async"
    """`sync` answers after an fsync that many producers share; `async` answers at once."""

    flush_interval_ms: int = 500
    """Under async: how often dirty pages are looked at."""

    flush_pages_min: int = 4
    """Under async: how many dirty pages are worth an fsync."""

    flush_thorough_ms: int = 10_000
    """Under async: how often everything is flushed, however little it is."""

    flush_timeout_ms: int = 5_000
    """Under sync: how long an answer waits for its fsync before it says so."""

    checkpoint_interval_ms: int = 10_000
    """How often the flushed position and the queues' tails are checkpointed while the log grows."""

    checkpoint_bytes: int = 32 * _MIB
    """How much new log makes a checkpoint due at once; a start after kill -9 scans this much."""

    upkeep_gap_ms: int = 1_000
    """Under load: how long bytes alone make no other checkpoint due, and no other snapshot."""

    snapshot_interval_ms: int = 60_000
    """How often the folded state is snapshot while the log grows."""

    snapshot_bytes: int = 32 * _MIB
    """How much new log makes a snapshot due at once."""

    retention_ms: int = 7 * 24 * 3_600_000
    """How long a topic keeps messages unless its `retention.ms` says otherwise; -1: for ever."""

    retention_bytes: int = -1
    """How many bytes a queue keeps unless its topic's `retention.bytes` says otherwise; -1: all."""

    retention_interval_ms: int = 60_000
    """How often retention looks for what may go."""

    disk_used_percent_max: int = 90
    """Past this use of the disk producers get an error and readers go on."""

    disk_forced_cleanup: bool = False
    """Past the disk limit, delete the oldest segments even if they have not expired."""

    key_index: bool = True
    """Whether messages are indexed by unique key and KEYS."""

    key_index_slots: int = 500_000
    """Hash slots in one key-index file."""

    key_index_entries: int = 2_000_000
    """Keys in one key-index file."""
