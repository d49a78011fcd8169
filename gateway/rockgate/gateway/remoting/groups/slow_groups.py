"""Slow groups: with `overload.slow_groups`, a group that is too far behind may not consume.

RocketMQ's `disableConsumeIfConsumerReadSlowly`. Reading far behind evicts what others read from the
page cache, so an operator may prefer to stop such a group. Its settings are changed as an
administrator would (`consumeEnable`), so they are in the log, pulls and pops are refused, and only
an administrator can allow it again. Groups of Kafka consumers are left alone.

Distances are those of RocketMQ: bytes of the log between a group's next message and the log's end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Log
from rockgate.store.api.progress import CommittedOffsets
from rockgate.store.api.queues import Queue, Queues

log = logging.getLogger(__name__)

INTERVAL_MS: Final = 180_000
SLICE_SECONDS: Final = 0.002


class SlowGroups:
    """Looks for slow groups every three minutes, a little per turn of upkeep."""

    def __init__(
        self,
        *,
        clients: Clients,
        settings: GroupSettings,
        progress: CommittedOffsets,
        queues: Queues,
        commit_log: Log,
        clock: Clock,
        config: OverloadConfig,
    ) -> None:
        self._clients = clients
        self._settings = settings
        self._progress = progress
        self._queues = queues
        self._log = commit_log
        self._clock = clock
        self._config = config
        self._next_ms = clock.monotonic_ms() + INTERVAL_MS
        self._walk: Iterator[None] | None = None

    def configure(self, config: OverloadConfig) -> None:
        """Look by another bound, or no longer, or from now on."""
        self._config = config

    def step(self) -> bool:
        """Do a little of what is due; say whether there is more."""
        if not self._config.slow_groups:
            self._walk = None
            return False
        if self._walk is None:
            now_ms = self._clock.monotonic_ms()
            if now_ms < self._next_ms:
                return False
            self._next_ms = now_ms + INTERVAL_MS
            self._walk = self._look()
        turn = TimeSlice(SLICE_SECONDS)
        walk, self._walk = self._walk, None
        for _ in walk:
            if turn.is_over():
                self._walk = walk
                return True
        return False

    def _look(self) -> Iterator[None]:
        """Check every queue of every group with members, pausing after each."""
        for group in self._clients.consumer_groups():
            yield
            for topic_id in self._progress.topics_of(group.name):
                for queue_id in self._progress.queues_of(group.name, topic_id):
                    yield
                    queue = self._queues.find(topic_id, queue_id)
                    if queue is None or not self._settings.of(group.name).consume_enable:
                        continue
                    behind = self._behind(group.name, queue)
                    if behind > self._config.slow_group_bytes_max:
                        self._disable(group.name, queue, behind)

    def _behind(self, group: str, queue: Queue) -> int:
        committed = self._progress.fetch(group, queue.topic_id, queue.queue_id)
        if committed is None or committed.offset >= queue.next_offset:
            return 0
        unit = queue.find(max(committed.offset, queue.log_start))
        return 0 if unit is None else self._log.end - unit.position

    def _disable(self, group: str, queue: Queue, behind: int) -> None:
        self._settings.set(structs.replace(self._settings.of(group), consume_enable=False))
        log.warning(
            "[PROTECT_BROKER] consumption disabled group=%s topic=%s queue=%d behind_bytes=%d",
            quoted(group),
            quoted(queue.topic.decode()),
            queue.queue_id,
            behind,
        )
