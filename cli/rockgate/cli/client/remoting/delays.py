"""Delayed messages, queried at RocketMQ's listener part by part and assembled here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.bodies.admin import (
    DUE_NAMES,
    Cancelled,
    Delayed,
    DelayedList,
    DelayPlace,
    DelayScan,
    DeliveredEarly,
)
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.admin import (
    DescribeHeader,
    NamedHeader,
    ScanDelaysHeader,
)
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC, TIMES_TOPIC

_IDS_PER_REQUEST: Final = 100
_NOWHERE: Final = 1 << 62


class Cursor(NamedTuple):
    """The last message of a page."""

    due_ms: int
    sequence: int


class Count(NamedTuple):
    """The number of delayed messages of one topic and one kind of delay."""

    topic: str | None
    """None if their target topics were not read."""
    by: str
    due: tuple[int, ...]
    """In the order of DUE_NAMES."""

    @property
    def waiting(self) -> int:
        """All of them."""
        return sum(self.due)


class Overview(NamedTuple):
    """The number of delayed messages, and the next ones due."""

    waiting: int
    now_ms: int
    counts: list[Count]
    soonest: list[DelayPlace]
    has_more: bool
    timeline: dict[tuple[str | None, str], dict[int, int]]
    """By topic and kind: how many are due in each bucket, by due time divided by the width."""


async def waiting_count(remoting: RemotingConnection) -> int:
    """The number of delayed messages, without reading any."""
    scan = await remoting.ask(RequestCode.SCAN_DELAYS, ScanDelaysHeader(start=_NOWHERE), DelayScan)
    return scan.waiting


async def overview(
    remoting: RemotingConnection,
    *,
    limit: int,
    after: Cursor | None,
    topic: str | None,
    by_target: bool,
    progress: Callable[[int, int], None],
    bucket_ms: int = 0,
    bucket_count: int = 0,
) -> Overview:
    """Scan all waiting messages; `progress` gets the number counted so far, and the total.

    With buckets they are counted by due time, too: see `Overview.timeline`.
    """
    timeline: dict[tuple[str | None, str], dict[int, int]] = {}
    start, end, counted = 0, -1, 0
    counts: dict[tuple[str | None, str], list[int]] = {}
    soonest: list[DelayPlace] = []
    while True:
        header = ScanDelaysHeader(
            start=start,
            limit=limit + 1,
            after_due_ms=-1 if after is None else after.due_ms,
            after_sequence=-1 if after is None else after.sequence,
            topic=topic,
            by_target=by_target,
            bucket_ms=bucket_ms,
            bucket_count=bucket_count,
        )
        part = await remoting.ask(RequestCode.SCAN_DELAYS, header, DelayScan)
        for each in part.counts:
            by = kind_of(each.topic, each.queue)
            target = each.target if by_target or topic else None
            key = (each.topic if by == "headers" else target, by)
            total = counts.setdefault(key, [0] * len(DUE_NAMES))
            for index, count in enumerate(each.due):
                total[index] += count
                counted += count
            buckets = timeline.setdefault(key, {})
            for bucket, count in each.buckets.items():
                buckets[bucket] = buckets.get(bucket, 0) + count
        soonest = sorted([*soonest, *part.soonest], key=lambda each: (each.due_ms, each.sequence))
        del soonest[limit + 1 :]
        start = part.next
        if end < 0:
            # Without a fixed end a scan would not finish while messages arrive as fast as it reads.
            end = part.end
        progress(counted, part.waiting)
        if not 0 <= start < end:
            break
    found = [Count(target, by, tuple(due)) for (target, by), due in counts.items()]
    return Overview(
        part.waiting,
        part.now_ms,
        sorted(found, key=lambda each: (each.topic or "", each.by)),
        soonest[:limit],
        len(soonest) > limit,
        timeline,
    )


async def describe(
    remoting: RemotingConnection, ids: Sequence[str], *, preview: int = 0, with_due: bool = False
) -> dict[str, Delayed]:
    """Details of messages, by the ids that were asked for; what is not known is left out."""
    found: dict[str, Delayed] = {}
    for at in range(0, len(ids), _IDS_PER_REQUEST):
        body = msgspec.json.encode(list(ids[at : at + _IDS_PER_REQUEST]))
        header = DescribeHeader(preview=preview, with_due=with_due)
        answer = await remoting.ask(RequestCode.DESCRIBE_DELAYS, header, DelayedList, body)
        found |= answer.found
    return found


async def cancel(remoting: RemotingConnection, id_: str) -> Cancelled:
    """Cancel a message, if it is still waiting."""
    return await remoting.ask(RequestCode.CANCEL_DELAY, NamedHeader(id=id_), Cancelled)


async def deliver(remoting: RemotingConnection, id_: str) -> DeliveredEarly:
    """Deliver a message now, if it is still waiting."""
    return await remoting.ask(RequestCode.DELIVER_DELAY, NamedHeader(id=id_), DeliveredEarly)


def kind_of(topic: str, queue: int) -> str:
    """The kind of delay, by the topic in which a message waits."""
    if topic == LEVELS_TOPIC:
        return f"level {queue + 1}"
    return "timer" if topic == TIMES_TOPIC else "headers"
