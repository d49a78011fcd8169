"""What a store's upkeep consists of: the steps that its tick takes, a little of each at a time."""

from __future__ import annotations

from typing import Final, Protocol

from rockgate.store.checkpointing import Checkpointer
from rockgate.store.clock import Clock
from rockgate.store.commitlog import CommitLog
from rockgate.store.delayfold import Delay
from rockgate.store.keyfeed import catch_up
from rockgate.store.keyindex import KeyIndex
from rockgate.store.progress import Progress
from rockgate.store.retention import Retention
from rockgate.store.snapshotting import Snapshotting
from rockgate.store.steps import Steps

KEYS_PER_TICK: Final = 256 << 10


class Parts(Protocol):
    """The parts of a store that want upkeep."""

    clock: Clock
    log: CommitLog
    progress: Progress
    checkpointer: Checkpointer
    keys: KeyIndex | None
    delay: Delay
    retention: Retention
    snapshotting: Snapshotting


def upkeep_steps(parts: Parts) -> Steps:
    """Return the steps; what is replaced in the store later is found there."""

    def progress() -> bool:
        parts.progress.step(parts.clock.monotonic_ms())
        return False

    def checkpoint() -> bool:
        if parts.checkpointer.is_due():
            parts.checkpointer.take()
        return False

    def keys() -> bool:
        return parts.keys is not None and catch_up(parts.log, parts.keys, KEYS_PER_TICK)

    def retention() -> bool:
        if parts.delay.waiting_count:
            parts.retention.keep(parts.delay)
        return parts.retention.step()

    def snapshot() -> bool:
        return parts.snapshotting.tick(is_wanted=parts.retention.wants_snapshot)

    steps = Steps(parts.clock)
    for step in (progress, checkpoint, keys, retention, snapshot):
        steps.add(step.__name__, step)
    return steps
