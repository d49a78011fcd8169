"""Where a group starts in a queue: the offset that is stored for it, else the configured start."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.store import GroupOffsets
from rockgate.sdk.consumer.settings import Start
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

_log: Final = logging.getLogger(__name__)


class FirstOffsets:
    """The first offsets of the queues that one member acquires.

    A new group starts at the end by default, so an application may wait for messages that were sent
    before. Where a topic has no stored offset, the log says once from where it is read.
    """

    def __init__(self, store: GroupOffsets, calls: BrokerCalls, start: Start | datetime) -> None:
        self._store = store
        self._calls = calls
        self._start = start
        self._logged: set[str] = set()

    async def of(self, queue: Queue) -> int:
        """The offset of a queue that was persisted, or where a new group is to begin."""
        committed = await self._store.read(queue)
        if committed is not None and committed >= 0:
            return committed
        # A message that fails before its retry topic is acquired must not be skipped.
        if queue.topic.startswith(RETRY_PREFIX):
            return 0
        offset = await self._configured(queue)
        if queue.topic not in self._logged:
            self._logged.add(queue.topic)
            _log.info(
                "group %s has no offset for topic %s yet: it starts at %s. "
                "The setting `start` changes that: Start.BEGINNING, Start.END, or a datetime",
                self._calls.group,
                queue.topic,
                described(self._start),
            )
        return offset

    async def _configured(self, queue: Queue) -> int:
        if self._start is Start.BEGINNING:
            return 0
        if isinstance(self._start, datetime):
            return await self._calls.search(queue, round(self._start.timestamp() * 1000))
        return await self._calls.end(queue)


def described(start: Start | datetime) -> str:
    """A start in words, with what it means for messages that were sent before."""
    if start is Start.BEGINNING:
        return "the beginning, with the oldest message"
    if isinstance(start, datetime):
        return f"{start.isoformat(timespec='seconds')}; messages sent before that are not read"
    return "the end; messages sent before now are not read"
