"""Where a group starts in a queue: the offset that is stored for it, else the configured start."""

from __future__ import annotations

from datetime import datetime

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.store import GroupOffsets
from rockgate.sdk.consumer.settings import Start
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue


async def first_offset(
    store: GroupOffsets, calls: BrokerCalls, queue: Queue, start: Start | datetime
) -> int:
    """The offset of a queue that was persisted, or where a new group is to begin."""
    committed = await store.read(queue)
    if committed is not None and committed >= 0:
        return committed
    return await start_offset(calls, queue, start)


async def start_offset(calls: BrokerCalls, queue: Queue, start: Start | datetime) -> int:
    """Where a group begins in a queue that it has never consumed."""
    # A message that fails before its retry topic is acquired must not be skipped.
    if start is Start.BEGINNING or queue.topic.startswith(RETRY_PREFIX):
        return 0
    if isinstance(start, datetime):
        return await calls.search(queue, round(start.timestamp() * 1000))
    return await calls.end(queue)
