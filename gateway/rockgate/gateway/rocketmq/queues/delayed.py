"""Batches with delayed records: each of those is a request of its own (310).

In a batch send brokers ignore the properties that delay a message, and deliver it at once. So a
record with a delay header goes alone, with `TIMER_DELIVER_MS` or a level, and the others of its
batch as usual. The offset of a delayed record is not known before it is due.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Final

from rockgate.gateway.delay.headers import HINT, Wait, wait_of, without_wait
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.cluster.brokers import QueueName, SendingBrokers, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerRefused
from rockgate.gateway.rocketmq.queues.outcomes import (
    BUSY,
    BUSY_S,
    BUSY_S_MAX,
    ILLEGAL,
    STORED,
    STORED_ONCE,
)
from rockgate.gateway.transcode.remote.sent_records import (
    AloneMessage,
    SentRecords,
    properties_of,
    to_messages,
)
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header
from rockgate.protocol.kafka.records.bounds import Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import Record, build_batch, open_records, walk_records
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.send import SentHeader
from rockgate.protocol.remoting.properties import DELAY_LEVEL, TIMER_DELIVER_MS

OLD: Final = "A broker of RocketMQ 4 delays by level only; use the header DELAY."
EMPTY: Final = "A delayed record needs a value: brokers refuse an empty message."


class DelayRule(Enum):
    """Which headers delay a record of a topic."""

    NONE = "none"
    """Its type is neither DELAY nor MIXED: they are ordinary headers."""
    LEVELS = "levels"
    """Its brokers know levels only, and no types: RocketMQ 4."""
    ALL = "all"


class DelayedSend:
    """Sends a batch with delayed records to a queue, one request after another."""

    def __init__(self, queue: QueueName, brokers: SendingBrokers) -> None:
        self._queue = queue
        self._brokers = brokers

    async def send(self, sent: SentRecords, born_ms: int, deadline: float) -> int:
        """The offset of the records that are not delayed, -1 without any.

        RequestError if a broker refuses, BrokerError if it is unknown what was stored.
        """
        offset = -1
        if sent.body:
            answer = await self._patiently(sent.body, None, born_ms, deadline)
            offset = read(answer, SentHeader).queue_offset
        for each in sent.alone:
            await self._patiently(each.body, each.properties, born_ms, deadline)
        return offset

    async def _patiently(
        self, body: bytes, properties: str | None, born_ms: int, deadline: float
    ) -> Command:
        """The answer of a broker that was not too busy."""
        pause_s = BUSY_S
        while True:
            if properties is None:
                answer = await self._brokers.send(self._queue, body, born_ms)
            else:
                answer = await self._brokers.send_alone(self._queue, body, properties, born_ms)
            if answer.code in ILLEGAL:
                raise RequestError(ErrorCode.INVALID_RECORD, answer.remark or "")
            if answer.code not in BUSY:
                if answer.code not in STORED | STORED_ONCE:
                    raise BrokerRefused(answer.code, answer.remark or "")
                return answer
            if asyncio.get_running_loop().time() > deadline:
                reason = f"Broker {self._queue.broker} is busy."
                raise RequestError(ErrorCode.REQUEST_TIMED_OUT, reason)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, BUSY_S_MAX)


def may_delay(data: Plain) -> bool:
    """Whether records may have a header that delays them."""
    return HINT.search(data) is not None


def to_delayed_messages(
    data: Plain,
    header: BatchHeader,
    *,
    born_ms: int,
    now_ms: int,
    unique: bytes | None,
    levels_only: bool,
    bounds: Bounds,
) -> SentRecords | None:
    """The messages of a batch; None if no record is delayed. MalformedBatch if one cannot be."""
    plain: list[Record] = []
    alone: list[AloneMessage] = []
    records = walk_records(data, header._replace(base_offset=0), bounds=bounds)
    for index, (_, timestamp, key, value, headers) in enumerate(records):
        try:
            wait = wait_of(headers)
        except ValueError as wrong:
            raise _invalid(str(wrong), index) from None
        if wait is None:
            whole = None if value is None else bytes(value)
            plain.append(Record(len(plain), timestamp, key, whole, headers))
            continue
        if not value:
            raise _invalid(EMPTY, index)
        if levels_only and not wait.level:
            raise _invalid(OLD, index)
        packed = properties_of(key, without_wait(headers), False, 64, index)
        properties = (packed + _delay(wait, now_ms)).decode("utf-8", "replace")
        alone.append(AloneMessage(bytes(value), properties))
    if not alone:
        return None
    body = b""
    if plain:
        batch = build_batch(plain, base_offset=0)
        rest = read_header(batch)
        opened = open_records(batch, rest, bounds=bounds)
        body = to_messages(opened, rest, born_ms=born_ms, unique=unique, bounds=bounds).body
    return SentRecords(body, header.record_count, tuple(alone))


def _delay(wait: Wait, now_ms: int) -> bytes:
    if wait.level:
        return b"%b\x01%d\x02" % (DELAY_LEVEL.encode(), wait.level)
    due_ms = now_ms + wait.ms if wait.is_from_now else wait.ms
    # A broker delivers what is due at once, but takes no time of before.
    return b"%b\x01%d\x02" % (TIMER_DELIVER_MS.encode(), max(due_ms, now_ms + 1))


def _invalid(reason: str, index: int) -> MalformedBatch:
    return MalformedBatch(reason, code=ErrorCode.INVALID_RECORD, index=index)
