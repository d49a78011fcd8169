"""Finds messages whose listeners hang: they block their queues, and are sent back instead."""

from __future__ import annotations

import logging
from typing import Final

from rockgate.sdk.consumer.delivery.redelivery import EXPIRED_LEVEL
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.received import Received

EXPIRED_MAX: Final = 16
"""Messages of a queue that are sent back in one pass."""

_log: Final = logging.getLogger(__name__)


def hangs(message: Received | None, now_s: float, timeout_s: float) -> bool:
    """Whether a listener has had a message for too long; one that has not begun does not hang."""
    return (
        message is not None
        and message.started_at_s is not None
        and now_s - message.started_at_s > timeout_s
    )


async def send_back_hanging(
    cached: ProcessQueue[Received], settlement: QueueSettlement, now_s: float, timeout_s: float
) -> int:
    """Send back the first messages of a queue while they hang; how many were."""
    for count in range(EXPIRED_MAX):
        first = cached.first
        if first is None or cached.is_dropped or not hangs(first, now_s, timeout_s):
            return count
        _log.warning("listener has not finished %s in time; sending it back", first.message_id)
        if await settlement.failed([first], EXPIRED_LEVEL):
            # No broker accepted it: it stays cached, and so does everything behind it.
            return count
    return EXPIRED_MAX
