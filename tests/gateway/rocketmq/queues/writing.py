"""A gateway's writer and its broker; several gateways may write to one."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.rocketmq.fake_brokers import QUEUE, FakeBrokers, InlineThreads, NoFence

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.members.leadership import NOT_SERVED, SERVED
from rockgate.gateway.rocketmq.queues.history import CaughtUp, QueueHistory
from rockgate.gateway.rocketmq.queues.writer import QueueWriter
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, build_batch

NOW_MS = 1_700_000_000_000


class Writing:
    """One gateway."""

    def __init__(self, brokers: FakeBrokers | None = None, fence: CaughtUp | None = None) -> None:
        self.brokers = brokers or FakeBrokers()
        history = QueueHistory(
            QUEUE, self.brokers, fence or NoFence(), group="g", now_ms=lambda: NOW_MS
        )
        self.is_served = True
        self.writer = QueueWriter(
            QUEUE,
            self.brokers,
            InlineThreads(),
            history,
            lease=lambda: SERVED if self.is_served else NOT_SERVED,
        )

    def append(
        self,
        count: int = 1,
        *,
        producer: int = -1,
        sequence: int = -1,
        epoch: int = 0,
        value: bytes = b"v",
        is_all: bool = True,
        wait_s: float = 30.0,
        compression: Compression = Compression.NONE,
    ) -> asyncio.Future[int]:
        records = [Record(at, NOW_MS, None, value, ()) for at in range(count)]
        batch = build_batch(
            records,
            base_offset=0,
            producer_id=producer,
            producer_epoch=epoch if producer >= 0 else -1,
            base_sequence=sequence,
            compression=compression,
        )
        return self.writer.append(
            bytes(batch),
            read_header(batch),
            is_all=is_all,
            deadline=asyncio.get_running_loop().time() + wait_s,
            now_ms=NOW_MS,
        )


async def code_of(outcome: asyncio.Future[int]) -> ErrorCode:
    with pytest.raises(RequestError) as raised:
        await outcome
    return raised.value.code
