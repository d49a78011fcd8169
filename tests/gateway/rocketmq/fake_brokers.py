"""Brokers in memory: a script of answers, or one queue that stores what it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from tests.gateway.transcode.remote.test_pulled_messages import message

from rockgate.gateway.rocketmq.cluster.brokers import PullAnswer, QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.transcode.remote.whole_batches import count_of
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.running import ReplicaLink, ReplicaStatus
from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers.offsets import OffsetAnswer
from rockgate.protocol.remoting.headers.pull import SUSPEND, PulledHeader, PullHeader
from rockgate.protocol.remoting.headers.query import QueryMessageHeader
from rockgate.protocol.remoting.headers.send import SentHeader
from rockgate.protocol.remoting.message import decode_batch

A = TypeVar("A")
QUEUE = QueueName("orders", "a", 1)
LOST = -99
"""A code of the script: no answer."""


class FakeBrokers:
    """One queue of one master. `script` has the codes of the next sends; else they succeed."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, bytes]] = []
        """Body and properties of what is stored."""
        self.alone: list[tuple[bytes, str]] = []
        """Delayed messages: body and properties."""
        self.inner: list[tuple[int, bytes, str]] = []
        """Whole batches: offset, body and properties."""
        self.inner_end = 0
        self.is_slave = False
        self.start = 0
        self.sends: list[int] = []
        """How many messages each request had."""
        self.pulls: list[tuple[int, int]] = []
        """Offset and count of each pull."""
        self.script: list[int] = []
        self.pull_count_max = 32
        self.is_paused = False
        self.in_flight = self.in_flight_max = 0
        self.news = asyncio.Event()
        self.go = asyncio.Event()
        self.pull_code: int | None = None
        self.shown: int | None = None
        """Messages that queue and index show already; None for all."""
        self.lookups: list[str] = []
        """The keys that were looked up."""
        self.answers_lost = 0
        """This number of sends is stored, but their answers do not come."""
        self.ha_count = 0
        self.replicas: list[int] = []
        """How far each slave is, in messages."""
        self.socket: list[tuple[bytes, bytes]] = []
        """What a stopped broker has received and not read."""
        self.running = asyncio.Event()
        """Cleared while the broker is stopped."""
        self.running.set()
        self.probes = 0
        self.reads_after_probes = 1
        """After this many answers a broker that runs again reads its sockets."""

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        assert queue == QUEUE
        contents = decode_batch(body)
        self.sends.append(len(contents.bodies))
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.is_paused:
                await self.go.wait()
        finally:
            self.in_flight -= 1
        code = self.script.pop(0) if self.script else ResponseCode.SUCCESS
        if code == LOST:
            raise BrokerLost("no answer")
        if code not in (0, 10, 11, 12):
            return Command(code, remark="refused")
        offset = len(self.messages)
        rows = zip(contents.bodies, contents.properties, strict=True)
        self.messages += [(bytes(each), bytes(packed)) for each, packed in rows]
        self.tell()
        if self.answers_lost:
            self.answers_lost -= 1
            raise BrokerLost("the connection was lost")
        header = SentHeader(msg_id="", queue_id=queue.queue_id, queue_offset=offset)
        return Command(code, headers.write(header))

    async def send_alone(
        self, queue: QueueName, body: Buffer, properties: str, born_ms: int, sys_flag: int = 0
    ) -> Command:
        assert queue == QUEUE
        await asyncio.sleep(0)
        code = self.script.pop(0) if self.script else ResponseCode.SUCCESS
        if code == LOST:
            raise BrokerLost("no answer")
        if code in (0, 10, 11, 12) and sys_flag:
            offset = self.inner_end
            self.inner_end += count_of(properties.encode())
            self.inner.append((offset, bytes(body), properties))
            header = SentHeader(msg_id="", queue_id=queue.queue_id, queue_offset=offset)
            return Command(code, headers.write(header))
        if code in (0, 10, 11, 12):
            self.alone.append((bytes(body), properties))
        header = SentHeader(msg_id="", queue_id=queue.queue_id, queue_offset=-1)
        return Command(code, headers.write(header))

    async def pull(self, broker: str, header: PullHeader, *, timeout_s: float) -> PullAnswer:
        answer = await self.ask(broker, RequestCode.PULL_MESSAGE, header, timeout_s=timeout_s)
        return PullAnswer(answer, self.is_slave)

    def tell(self) -> None:
        """Wake the pulls that are held."""
        self.news.set()
        self.news = asyncio.Event()

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        if code is not RequestCode.PULL_MESSAGE:
            return await self._answer(code, header)
        assert isinstance(header, PullHeader)
        offset, count = header.queue_offset, header.max_msg_nums
        self.pulls.append((offset, count))
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            await asyncio.sleep(0)
            if offset == len(self.messages) and header.sys_flag & SUSPEND:
                await self.news.wait()
        finally:
            self.in_flight -= 1
        if self.pull_code is not None:
            if self.pull_code == LOST:
                raise BrokerLost("no answer")
            return Command(self.pull_code)
        end = self.visible
        found = b""
        if self.start <= offset < end:
            answered = ResponseCode.SUCCESS
            for at in range(offset, min(end, offset + min(count, self.pull_count_max))):
                stored, packed = self.messages[at]
                found += message(at, packed, stored)
        elif offset == end:
            answered = ResponseCode.PULL_NOT_FOUND
        else:
            answered = ResponseCode.PULL_OFFSET_MOVED
        bounds = PulledHeader(next_begin_offset=offset, min_offset=self.start, max_offset=end)
        return Command(answered, headers.write(bounds), body=found)

    @property
    def visible(self) -> int:
        return len(self.messages) if self.shown is None else min(self.shown, len(self.messages))

    async def _answer(self, code: RequestCode, header: msgspec.Struct | None) -> Command:
        await asyncio.sleep(0)
        await self.running.wait()
        end = len(self.messages)
        if code is RequestCode.GET_MAX_OFFSET:
            return Command(0, headers.write(OffsetAnswer(offset=self.visible)))
        if code is RequestCode.GET_BROKER_RUNTIME_INFO:
            self.probes += 1
            table = {"commitLogMaxOffset": str(end), "dispatchBehindBytes": str(end - self.visible)}
            if self.probes >= self.reads_after_probes:
                self.messages += self.socket
                self.socket.clear()
            return Command(0, body=javajson.encode(KeyValues(table=table)))
        if code is RequestCode.GET_BROKER_HA_STATUS:
            self.ha_count += 1
            links = [ReplicaLink(slave_ack_offset=at) for at in self.replicas]
            status = ReplicaStatus(master_commit_log_max_offset=end, ha_connection_info=links)
            return Command(0, body=javajson.encode(status))
        assert code is RequestCode.QUERY_MESSAGE, code
        assert isinstance(header, QueryMessageHeader)
        self.lookups.append(header.key)
        key = b"UNIQ_KEY\x01%b\x02" % header.key.encode()
        found = b"".join(
            message(at, packed, stored)
            for at, (stored, packed) in enumerate(self.messages[: self.visible])
            if key in packed
        )
        return Command(0 if found else ResponseCode.QUERY_NOT_FOUND, body=found)


class NoFence:
    """A broker that has always caught up; it counts who asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def caught_up(self, broker: str, since: float) -> None:
        self.asked.append(since)
        await asyncio.sleep(0)


class InlineThreads:
    """Threads that run at once, after a turn of the loop."""

    bounds: Bounds = BOUNDS

    async def run(self, work: Callable[[], A]) -> A:
        await asyncio.sleep(0)
        return work()


async def settle(is_settled: Callable[[], Any], turns: int = 500) -> None:
    """Let the loop run until something is so."""
    for _ in range(turns):
        if is_settled():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")
