"""Load by prebuilt frames: one message per request, with a given number in flight.

librdkafka would batch messages; here every message is a request. Frames are built once and then
patched (correlation id, sequence, CRC), so that the client uses a fraction of the server's CPU
time. The error code of every response is checked.
"""

import asyncio
import socket
import ssl
import struct
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

import uvloop
from crc32c import crc32c

from bench.load.rdkafka import LoadFailed
from bench.peers.answers import Address
from rockgate.protocol.frames import FrameReader
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.error_codes import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import CRC_START
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import decode, encode

PRODUCE_VERSION = 9
INIT_VERSION = 4
FETCH_VERSION = 13
METADATA_VERSION = 12
TIMEOUT_MS = 30_000
SECONDS_MAX = 60.0
RETRY_SECONDS = 0.05
POLL_SECONDS = 0.01
ANSWER_SIZE_MAX = 1 << 20
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_CORRELATION_AT = 8
_CRC_AT = 17
_SEQUENCE_AT = 53


class Frames:
    """Produce requests of one message for partition 0 of a topic."""

    def __init__(
        self, topic: str, size: int, *, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        self.is_idempotent = producer_id >= 0
        record = Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=bytes(size))
        batch = bytes(
            build_batch(
                [record],
                base_offset=0,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=0 if self.is_idempotent else -1,
            )
        )
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        connection = ClientConnection(client_id="bench")
        connection.send(ApiKey.PRODUCE, PRODUCE_VERSION, [encode(request, PRODUCE_VERSION)])
        self._frame = bytearray(b"".join(connection.data_to_send()))
        self._batch_at = self._frame.index(batch)
        self._batch_end = self._batch_at + len(batch)
        self._number = 0
        # In a response, after the length: correlation id, tags, topics, name, partitions, index.
        self._code_at = 4 + 1 + 1 + (1 + len(topic)) + 1 + 4

    def next(self) -> bytes:
        """The next request."""
        frame, at = self._frame, self._batch_at
        _INT32.pack_into(frame, _CORRELATION_AT, self._number)
        if self.is_idempotent:
            _INT32.pack_into(frame, at + _SEQUENCE_AT, self._number)
            covered = memoryview(frame)[at + CRC_START : self._batch_end]
            _UINT32.pack_into(frame, at + _CRC_AT, crc32c(covered))
        self._number += 1
        return bytes(frame)

    def check(self, answer: memoryview) -> None:
        """Raise the error of a response, if it has one."""
        (code,) = _INT16.unpack_from(answer, self._code_at)
        if code:
            raise LoadFailed(f"a message was refused with code {code}")


def fetch_frames(address: Address, topic: str, count: int) -> list[bytes]:
    """Make Fetch requests for one batch each of partition 0, from its beginning on."""
    connection = ClientConnection(client_id="bench")
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=bytes(16), name=topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    connection.send(ApiKey.METADATA, METADATA_VERSION, [encode(asked, METADATA_VERSION)])
    with socket.create_connection(address, timeout=SECONDS_MAX) as raw:
        raw.sendall(b"".join(connection.data_to_send()))
        answers = connection.receive_data(raw.recv(1 << 16))
        while not answers:
            answers = connection.receive_data(raw.recv(1 << 16))
    (found,) = decode(MetadataResponse, METADATA_VERSION, answers[0].body).topics
    assert isinstance(found, MetadataResponseTopic), "decoded as a whole"
    frames = []
    for offset in range(count):
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1,
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=ANSWER_SIZE_MAX,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic_id=found.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
        )
        connection.send(ApiKey.FETCH, FETCH_VERSION, [encode(request, FETCH_VERSION)])
        frames.append(b"".join(connection.data_to_send()))
    return frames


# One in flight


def one_in_flight(
    address: Address,
    topic: str,
    size: int,
    seconds: float,
    context: ssl.SSLContext | None = None,
) -> list[float]:
    """Return the seconds of each request, sent one after the other over one connection.

    With a context the connection has TLS.
    """
    frames = Frames(topic, size)
    taken = []
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(address, timeout=SECONDS_MAX))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            wrapped = context.wrap_socket(connection, server_hostname=address[0])
            connection = stack.enter_context(wrapped)
        reader = FrameReader(ANSWER_SIZE_MAX)
        end = time.perf_counter() + seconds
        began = 0.0
        while began < end:
            frame = frames.next()
            began = time.perf_counter()
            connection.sendall(frame)
            while not (answers := reader.feed(connection.recv(1 << 16))):
                pass
            taken.append(time.perf_counter() - began)
            frames.check(answers[0])
    return taken


# Many connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """The result of many connections together."""

    request_count: int
    """Responses during the measurement."""
    seconds: float
    total_count: int
    """All responses, including warm-up and those in flight at the end."""

    @property
    def per_second(self) -> float:
        """Requests a second."""
        return self.request_count / self.seconds


class _Sender(asyncio.Protocol):
    """An idempotent producer with its own connection."""

    def __init__(self, storm: "_Run") -> None:
        self._storm = storm
        self._frames: Frames | None = None
        self._reader = FrameReader(ANSWER_SIZE_MAX)
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.in_flight = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request a producer id."""
        # uvloop's transports have this interface without the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._hello = ClientConnection(client_id="bench")
        self._introduce()

    def data_received(self, data: bytes) -> None:
        """Count responses and send as many requests again."""
        try:
            if self._frames is None:
                self._introduced(data)
                return
            answers = self._reader.feed(data)
            for answer in answers:
                self._frames.check(answer)
        except (LoadFailed, struct.error) as error:
            self._storm.fail(error)
            return
        self.in_flight -= len(answers)
        self._storm.answered(len(answers))
        if self._storm.is_sending:
            self._send(len(answers))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the storm if the server closes the connection."""
        self._lost.set_result(None)
        if self._storm.is_sending:
            self._storm.fail(LoadFailed("the server closed a connection"))

    def begin(self, in_flight: int) -> None:
        """Fill the pipeline."""
        self._send(in_flight)

    async def close(self) -> None:
        """Close the connection."""
        self._transport.abort()
        await self._lost

    def _introduce(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
        self._hello.send(ApiKey.INIT_PRODUCER_ID, INIT_VERSION, [encode(request, INIT_VERSION)])
        self._transport.writelines(self._hello.data_to_send())

    def _introduced(self, data: bytes) -> None:
        for answer in self._hello.receive_data(data):
            found = decode(InitProducerIdResponse, INIT_VERSION, answer.body)
            if found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # Kafka allocates ids in blocks, and the first block takes a moment.
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._introduce)
                return
            if found.error_code:
                raise LoadFailed(f"no producer id: code {found.error_code}")
            self._frames = Frames(
                self._storm.topic,
                self._storm.size,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
            )
            self._storm.introduced()

    def _send(self, count: int) -> None:
        assert self._frames is not None
        self.in_flight += count
        self._transport.writelines([self._frames.next() for _ in range(count)])


class _Run:
    """One storm: its senders, its clock and its count."""

    def __init__(self, topic: str, size: int, connections: int) -> None:
        loop = asyncio.get_running_loop()
        self.topic = topic
        self.size = size
        self.is_sending = True
        self.count = 0
        self._missing = connections
        self.ready: asyncio.Future[None] = loop.create_future()
        self.failed: asyncio.Future[None] = loop.create_future()

    def introduced(self) -> None:
        """Count a sender that has its producer id."""
        self._missing -= 1
        if not self._missing and not self.ready.done():
            self.ready.set_result(None)

    def answered(self, count: int) -> None:
        """Count responses."""
        self.count += count

    def fail(self, error: Exception) -> None:
        """Store the first error."""
        self.is_sending = False
        if not self.failed.done():
            self.failed.set_exception(error)

    async def wait(self, event: "asyncio.Future[None]") -> None:
        """Wait for an event, unless the storm fails first."""
        both = {event, self.failed}
        await asyncio.wait(both, timeout=SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
        if self.failed.done():
            self.failed.result()
        if not event.done():
            raise LoadFailed("the server did not answer in time")

    async def wait_seconds(self, seconds: float) -> None:
        """Sleep, unless the storm fails first."""
        await asyncio.wait({self.failed}, timeout=seconds)
        if self.failed.done():
            self.failed.result()

    async def finish(self, senders: "list[_Sender]") -> None:
        """Stop sending, and wait for the last responses."""
        self.is_sending = False
        deadline = time.monotonic() + SECONDS_MAX
        while any(sender.in_flight for sender in senders):
            await self.wait_seconds(POLL_SECONDS)
            if time.monotonic() > deadline:
                raise LoadFailed("requests stay without an answer")


def storm(
    address: Address,
    topic: str,
    *,
    size: int,
    connections: int,
    in_flight: int,
    warm_up_seconds: float,
    seconds: float,
) -> Storm:
    """Send single-message requests over many connections; each is an idempotent producer."""

    async def run() -> Storm:
        loop = asyncio.get_running_loop()
        running = _Run(topic, size, connections)
        senders: list[_Sender] = []
        try:
            for _ in range(connections):
                _, sender = await loop.create_connection(lambda: _Sender(running), *address)
                senders.append(sender)
            await running.wait(running.ready)
            for sender in senders:
                sender.begin(in_flight)
            await running.wait_seconds(warm_up_seconds)
            count, began = running.count, time.perf_counter()
            await running.wait_seconds(seconds)
            timed, elapsed = running.count - count, time.perf_counter() - began
            await running.finish(senders)
            return Storm(request_count=timed, seconds=elapsed, total_count=running.count)
        finally:
            running.is_sending = False
            # uvloop does not close while a connection is open.
            await asyncio.gather(*(sender.close() for sender in senders))

    return uvloop.run(run())
