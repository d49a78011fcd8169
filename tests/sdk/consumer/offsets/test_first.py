"""What a new group says about where it starts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.first import FirstOffsets
from rockgate.sdk.consumer.offsets.store import BrokerOffsets
from rockgate.sdk.consumer.settings import Start
from rockgate.sdk.results import Queue

A0, A1, RETRY = Queue("t", "a", 0), Queue("t", "a", 1), Queue("%RETRY%g", "a", 0)
TIME = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


class OneBroker:
    """A broker with a few messages in each queue, and offsets of a group or none."""

    group = "g"

    def __init__(self, committed: int | None) -> None:
        self._committed = committed

    async def committed(self, queue: Queue) -> int | None:
        return self._committed

    async def end(self, queue: Queue) -> int:
        return 77

    async def search(self, queue: Queue, timestamp_ms: int) -> int:
        return 33


def first_offsets(committed: int | None, start: Start | datetime) -> FirstOffsets:
    calls = cast("BrokerCalls", OneBroker(committed))
    return FirstOffsets(BrokerOffsets(calls), calls, start)


@pytest.mark.parametrize(
    ("start", "offset", "said"),
    [
        (Start.END, 77, "it starts at the end; messages sent before now are not read."),
        (Start.BEGINNING, 0, "it starts at the beginning, with the oldest message."),
        (TIME, 33, "it starts at 2026-01-02T03:04:05+00:00; messages sent before that"),
    ],
)
async def test_a_new_group_says_once_for_each_topic_where_it_starts_and_what_changes_that(
    start: Start | datetime, offset: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rockgate.sdk.consumer")
    first = first_offsets(None, start)
    assert [await first.of(queue) for queue in (A0, A1, RETRY)] == [offset, offset, 0]
    (line,) = caplog.messages
    assert line.startswith("group g has no offset for topic t yet: ")
    assert said in line
    assert "The setting `start` changes that" in line


async def test_a_group_that_continues_says_nothing_of_a_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "rockgate.sdk.consumer")
    assert await first_offsets(5, Start.END).of(A0) == 5
    assert not caplog.messages
