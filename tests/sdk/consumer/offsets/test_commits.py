"""Commits to brokers, while queues come and go."""

from __future__ import annotations

from typing import cast

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.commits import commit_all
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.results import Queue

FIRST, SECOND, THIRD = (Queue("orders", "a", number) for number in range(3))


class Calls:
    """A broker: while it takes the first offset, other queues change."""

    def __init__(self, offsets: OffsetTable) -> None:
        self.offsets = offsets
        self.taken: list[tuple[Queue, int]] = []

    async def commit(self, queue: Queue, offset: int, *, is_awaited: bool = False) -> None:
        self.taken.append((queue, offset))
        if queue == FIRST:
            self.offsets.remove(SECOND)
            self.offsets.update(THIRD, 31, increase_only=True)


async def test_a_queue_that_was_given_up_meanwhile_is_not_committed() -> None:
    """Its next owner may have committed more by then, which this would take back."""
    offsets = OffsetTable()
    for number, queue in enumerate((FIRST, SECOND, THIRD), 1):
        offsets.update(queue, 10 * number, increase_only=True)
    calls = Calls(offsets)
    await commit_all(cast("BrokerCalls", calls), offsets)
    assert calls.taken == [(FIRST, 10), (THIRD, 31)]
    assert offsets.unpersisted() == {}
