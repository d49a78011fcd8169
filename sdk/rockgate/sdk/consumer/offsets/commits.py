"""Commits a group's offsets to brokers; a commit that fails is retried next time."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.results import Queue

_log: Final = logging.getLogger(__name__)


async def commit_all(
    calls: BrokerCalls,
    offsets: OffsetTable,
    queues: Collection[Queue] | None = None,
    *,
    is_awaited: bool = False,
    is_required: bool = False,
) -> None:
    """Commit what has changed, of all queues or of these.

    What is not awaited may be lost with its connection. What is required raises the first failure,
    after all queues were tried.
    """
    failure: SdkError | None = None
    for queue in offsets.unpersisted(queues):
        offset = offsets.get(queue)
        if offset is None:
            # Given up meanwhile: its next owner is further by now.
            continue
        try:
            await calls.commit(queue, offset, is_awaited=is_awaited)
        except Closed:
            raise
        except SdkError as failed:
            failure = failure or failed
            _log.warning("offset of %s/%s/%d: %s", queue.topic, queue.broker, queue.id, failed)
        else:
            offsets.persisted(queue, offset)
    if is_required and failure is not None:
        raise failure
