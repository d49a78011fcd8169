"""The upkeep of a store: the steps of its tick, each in small slices.

There are two kinds of steps. Local ones only touch the files of this store, so any open store runs
them. The others append to the log, and run only after the store has begun an epoch.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from rockgate.store.clock import Clock
from rockgate.store.delay.fold import Delay
from rockgate.store.errors import StoreFull
from rockgate.store.keys.keyfeed import KeyFeed
from rockgate.store.log.beginning import Beginning
from rockgate.store.progress.progress import Progress
from rockgate.store.state.epochs import TOPIC, Assigned, Epochs
from rockgate.store.state.snapshotter import Snapshotter
from rockgate.store.upkeep.checkpointer import Checkpointer
from rockgate.store.upkeep.compaction.cleaner import Cleaner
from rockgate.store.upkeep.retention import Retention
from rockgate.store.upkeep.steps import Steps
from rockgate.store.write.append import Appender

_log = logging.getLogger(__name__)

KEYS_PER_TICK: Final = 256 << 10


class Parts(Protocol):
    """The parts of a store that need upkeep."""

    clock: Clock
    progress: Progress
    checkpointer: Checkpointer
    key_feed: KeyFeed | None
    delay: Delay
    retention: Retention
    cleaner: Cleaner
    snapshotter: Snapshotter
    appender: Appender
    epochs: Epochs
    beginning: Beginning


def upkeep_steps(parts: Parts) -> Steps:
    """Return the steps; parts that the store replaces later are looked up when they run."""

    def epoch() -> bool:
        if parts.epochs.awaited is not None:
            begin_epoch(parts, parts.epochs.awaited)
        return False

    def progress() -> bool:
        parts.progress.step(parts.clock.monotonic_ms())
        return False

    def checkpoint() -> bool:
        if parts.checkpointer.is_due():
            parts.checkpointer.take()
        return False

    def keys() -> bool:
        return parts.key_feed is not None and parts.key_feed.step(KEYS_PER_TICK)

    def retention() -> bool:
        if parts.delay.waiting_count:
            parts.retention.keep(parts.delay)
        return parts.retention.step(may_append=not parts.appender.is_read_only)

    def compaction() -> bool:
        return parts.cleaner.step()

    def snapshot() -> bool:
        return parts.snapshotter.tick(is_wanted=parts.retention.wants_snapshot)

    steps = Steps(parts.clock)
    for appending in (epoch, progress, compaction):
        steps.add(appending.__name__, appending, appends=True)
    for local in (checkpoint, keys, retention, snapshot):
        steps.add(local.__name__, local)
    return steps


def begin_epoch(parts: Parts, assigned: Assigned) -> None:
    """Append the epoch of this run; until there is space for it, everything else is rejected."""
    appender, epochs, beginning = parts.appender, parts.epochs, parts.beginning
    number, nonce = assigned
    epochs.next_change(number)  # ValueError for a number that cannot follow
    was_read_only = appender.is_read_only
    held, appender.failure = appender.failure, None
    try:
        beginning.step()
        change = epochs.next_change(number, beginning.directory, nonce)
        appender.upkeep.append_state(TOPIC, change)
    except StoreFull as error:
        if held is None or was_read_only:
            held = StoreFull(f"Read-only since the start: {error}")
        appender.fail(held)
        if epochs.awaited is None:
            _log.error("Rejecting writes until there is space: %s", appender.failure)
        epochs.awaited = assigned
        return
    epochs.awaited = None
    appender.refusal = appender.state_refusal = None
    if not was_read_only:
        _log.info("Accepting writes: there is space again.")
