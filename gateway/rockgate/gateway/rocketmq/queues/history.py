"""What of producers' batches is in a queue already: its tail, and the index of keys.

Both show what was stored only some milliseconds after it was confirmed, and a broker that was
stopped may have requests in its sockets that it has not read. So nothing is asked before the broker
is known to have caught up (`caught_up`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from rockgate.gateway.rocketmq.cluster.brokers import Brokers, QueueName, checked, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.queues.batch_marks import BatchMark, find_marks
from rockgate.gateway.transcode.remote.sent_records import unique_key
from rockgate.protocol.entry import EntryError
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.offsets import MaxOffsetHeader, OffsetAnswer
from rockgate.protocol.remoting.headers.pull import SUBSCRIPTION, PullHeader
from rockgate.protocol.remoting.headers.query import QueryMessageHeader

TAIL_COUNT: Final = 2_048
"""Messages from the end of a queue that are read in a new term."""
STRIDE: Final = 32
PULLS_MAX: Final = 8
FOUND_MAX: Final = 32
AGE_MS_MAX: Final = 24 * 3_600_000
"""Batches that were stored before are not looked for: Kafka forgets producers after a day, too."""
AHEAD_MS_MAX: Final = 3_600_000
"""How much a broker's clock may be ahead."""
ASK_S: Final = 5.0


class CaughtUp(Protocol):
    """Waits until nothing from before can still become visible."""

    async def caught_up(self, broker: str, since: float) -> None:
        """Wait until a broker shows all that it was sent before a time of the loop."""
        ...


class History(Protocol):
    """What is in the queue already."""

    async def tail(self, since: float) -> list[BatchMark]:
        """The batches in the queue's tail, with all that was sent before a time of the loop."""
        ...

    async def find(self, header: BatchHeader) -> int | None:
        """The offset of a producer's batch, if it is stored."""
        ...


class QueueHistory:
    """One queue."""

    def __init__(
        self,
        queue: QueueName,
        brokers: Brokers,
        fence: CaughtUp,
        *,
        group: str,
        now_ms: Callable[[], int],
    ) -> None:
        self._queue = queue
        self._brokers = brokers
        self._fence = fence
        self._group = group
        self._now_ms = now_ms

    async def tail(self, since: float) -> list[BatchMark]:
        """The batches in the queue's tail, in order, when the broker has caught up."""
        await self._fence.caught_up(self._queue.broker, since)
        header = MaxOffsetHeader(topic=self._queue.topic, queue_id=self._queue.queue_id)
        code = RequestCode.GET_MAX_OFFSET
        answer = await self._brokers.ask(self._queue.broker, code, header, timeout_s=ASK_S)
        end = read(checked(answer), OffsetAnswer).offset
        limit = asyncio.Semaphore(PULLS_MAX)
        first = max(0, end - TAIL_COUNT)
        strides = range(first, end, STRIDE)
        found = await asyncio.gather(
            *(self._stride(at, min(end, at + STRIDE), limit) for at in strides)
        )
        return [mark for some in found for mark in some]

    async def find(self, header: BatchHeader) -> int | None:
        """The offset of a producer's batch if it is stored; None if it is not."""
        key = unique_key(header)
        assert key is not None, "only batches of a producer are looked for"
        now_ms = self._now_ms()
        asked = QueryMessageHeader(
            topic=self._queue.topic,
            key=key.decode(),
            max_num=FOUND_MAX,
            begin_timestamp=now_ms - AGE_MS_MAX,
            end_timestamp=now_ms + AHEAD_MS_MAX,
            unique_key_query=True,
        )
        code = RequestCode.QUERY_MESSAGE
        answer = await self._brokers.ask(self._queue.broker, code, asked, timeout_s=ASK_S)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        places = [
            mark.offset
            for mark in _marks(checked(answer))
            if mark.queue_id == self._queue.queue_id
            and mark.producer_id == header.producer_id
            and mark.epoch == header.producer_epoch
            and mark.sequence == header.base_sequence
        ]
        return min(places, default=None)

    async def _stride(self, offset: int, end: int, limit: asyncio.Semaphore) -> list[BatchMark]:
        found: list[BatchMark] = []
        async with limit:
            while offset < end:
                answer = await self._pull(offset, end - offset)
                if answer.code != ResponseCode.SUCCESS:
                    # Deleted meanwhile, or never there: nothing that a producer could repeat.
                    return found
                try:
                    marks = find_marks(answer.body, offset)
                except EntryError as damage:
                    raise BrokerLost(f"cannot decode messages: {damage}") from None
                found += [mark for mark in marks.batches if offset <= mark.offset < end]
                if marks.end <= offset:
                    return found
                offset = marks.end
        return found

    async def _pull(self, offset: int, count: int) -> Command:
        header = PullHeader(
            consumer_group=self._group,
            topic=self._queue.topic,
            queue_id=self._queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=SUBSCRIPTION,
            subscription="*",
            expression_type="TAG",
            bname=self._queue.broker,
        )
        code = RequestCode.PULL_MESSAGE
        return await self._brokers.ask(self._queue.broker, code, header, timeout_s=ASK_S)


def _marks(answer: Command) -> list[BatchMark]:
    try:
        return find_marks(answer.body).batches
    except EntryError as damage:
        raise BrokerLost(f"cannot decode messages: {damage}") from None
