"""Makes the messages of a batch, at once or in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from rockgate.gateway.rocketmq.queues.delayed import DelayRule, may_delay, to_delayed_messages
from rockgate.gateway.transcode.sent_records import SentRecords, to_messages, unique_key
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.kafka.records.bounds import Bounds
from rockgate.protocol.kafka.records.record import open_records

A = TypeVar("A")


class OpeningThreads(Protocol):
    """Where batches that take long are opened."""

    @property
    def bounds(self) -> Bounds:
        """The limits of a batch."""
        ...

    async def run(self, work: Callable[[], A]) -> A:
        """Run work in a thread."""
        ...


def make_messages(
    body: bytes,
    header: BatchHeader,
    born_ms: int,
    now_ms: int,
    delay: DelayRule,
    bounds: Bounds,
) -> SentRecords:
    """Return a batch as messages; MalformedBatch if that is impossible."""
    data, unique = open_records(body, header, bounds=bounds), unique_key(header)
    if delay is not DelayRule.NONE and may_delay(data):
        delayed = to_delayed_messages(
            data,
            header,
            born_ms=born_ms,
            now_ms=now_ms,
            unique=unique,
            levels_only=delay is DelayRule.LEVELS,
            bounds=bounds,
        )
        if delayed is not None:
            return delayed
    return to_messages(data, header, born_ms=born_ms, unique=unique, bounds=bounds)
