"""Walks: the files of ours that a request passes through, found by tracing.

    python -m tests.house.walks     writes docs/internals/walks.md

A real server runs in this process, and a profile hook on its loop's thread records every file of
ours in which a function is called between a request and its response. Clients run in other threads,
and each request is made several times: background work of the server is in some of the traces but
not in all.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from bench.load import rdkafka
from bench.load.kafka_frames import Frames
from bench.load.remoting_frames import PULL_COUNT, pull_frame, send_frames
from confluent_kafka.admin import AdminClient, NewTopic
from tests.house.checkout import ROOT, SOURCE_ROOMS

from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import encode
from rockgate.sdk.blocking import BlockingProducer
from rockgate.sdk.message import Message
from rockgate.sdk.results import Outcome

PAGE = ROOT / "docs" / "internals" / "walks.md"
ROUNDS = 7
PRODUCE_VERSION, FETCH_VERSION = 9, 12
SIZE = 100
HEAD = """# Walks

Which files a request passes through on the server's event loop, in the order in which it first
comes to them. The lists are traced, not written: `python -m tests.house.walks` starts a server,
makes each request seven times and keeps what all traces have in common. A house test fails when a
walk is longer than it is here.
[architecture.md](../architecture.md) says what happens on the way.
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """The files of one request."""

    name: str
    about: str
    files: tuple[str, ...]


class Tracer:
    """Records files of ours as functions in them are called on this thread."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._known: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """A profile hook."""
        if event == "call":
            name = frame.f_code.co_filename
            if name not in self._known:
                self._known[name] = self._ours(name)
            ours = self._known[name]
            if ours is not None:
                self.files[ours] = None

    def _ours(self, name: str) -> str | None:
        path = Path(name)
        if not path.is_relative_to(ROOT):
            return None
        relative = path.relative_to(ROOT)
        return relative.as_posix() if relative.parts[0] in SOURCE_ROOMS else None


async def trace(name: str, about: str, exchange: Callable[[], object]) -> Walk:
    """Make a request in a thread, several times, and return what all traces have in common."""
    await asyncio.to_thread(exchange)
    traces = []
    for _ in range(ROUNDS):
        tracer = Tracer()
        sys.setprofile(tracer)
        try:
            await asyncio.to_thread(exchange)
        finally:
            sys.setprofile(None)
        traces.append(tracer.files)
    shared = set.intersection(*(set(files) for files in traces))
    return Walk(name, about, tuple(file for file in traces[0] if file in shared))


class Asker:
    """One permanent connection: opening and closing it are no part of a walk."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout=30)

    def ask(self, frame: bytes) -> None:
        """Send a request of either protocol and read its response."""
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._read(4))
        self._read(size)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._socket.recv(count - len(data))
        return data


def _frame(key: ApiKey, version: int, body: bytes) -> bytes:
    connection = ClientConnection(client_id="walk")
    connection.send(key, version, [body])
    return b"".join(bytes(part) for part in connection.data_to_send())


def _fetch(topic: str) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return _frame(ApiKey.FETCH, FETCH_VERSION, bytes(encode(request, FETCH_VERSION)))


def _delayed(topic: str) -> bytes:
    header = ("TIMER_DELAY_MS", b"3600000")
    record = Record(offset=0, timestamp=0, key=None, value=b"later", headers=(header,))
    data = PartitionProduceData(index=0, records=bytes(build_batch([record], base_offset=0)))
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return _frame(ApiKey.PRODUCE, PRODUCE_VERSION, bytes(encode(request, PRODUCE_VERSION)))


def _create(bootstrap: str) -> None:
    for topic in ("produced", "sent"):
        rdkafka.create_topic(bootstrap, topic, 1)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    later = NewTopic("later", 1, 1, config={"message.type": "DELAY"})
    for future in admin.create_topics([later]).values():
        future.result(30)


def _commit(producer: BlockingProducer) -> None:
    with producer.transaction(Message("sent", b"half")):
        pass


async def walks(directory: Path) -> list[Walk]:
    """Start a server and trace every walk."""
    config = gather().config
    free = Address.parse("127.0.0.1:0")
    config = replace(
        config,
        server=replace(config.server, data_dir=directory),
        **{
            listener: replace(getattr(config, listener), listen=free)
            for listener in ("kafka", "remoting", "namesrv", "http")
        },
    )
    async with AsyncExitStack() as resources:
        server = Server(config)
        await server.start(resources)
        return await _walks(server.addresses)


async def _walks(addresses: Mapping[str, Address]) -> list[Walk]:
    await asyncio.to_thread(_create, str(addresses["kafka"]))
    kafka = await asyncio.to_thread(Asker, addresses["kafka"])
    remoting = await asyncio.to_thread(Asker, addresses["remoting"])
    send, later = send_frames("sent", SIZE)(0, 0), _delayed("later")
    produce, fetch = Frames("produced", SIZE).next(), _fetch("produced")
    for _ in range(PULL_COUNT):
        await asyncio.to_thread(remoting.ask, send)
    pull = pull_frame("sent", 0)
    found = [
        await trace("Produce", "A batch to one partition, acks=all", lambda: kafka.ask(produce)),
        await trace("Fetch", "What was produced", lambda: kafka.ask(fetch)),
        await trace("send", "One message (310)", lambda: remoting.ask(send)),
        await trace("pull", "32 messages (11)", lambda: remoting.ask(pull)),
        await trace("delayed record", "With `TIMER_DELAY_MS`, produced", lambda: kafka.ask(later)),
    ]
    kafka.close()
    remoting.close()

    def open_producer() -> BlockingProducer:
        servers = str(addresses["namesrv"])
        return BlockingProducer(servers, group="walk", checker=lambda _: Outcome.UNKNOWN).open()

    producer = await asyncio.to_thread(open_producer)
    about = "Half a message and its end (310, 37)"
    try:
        found.append(await trace("half commit", about, lambda: _commit(producer)))
    finally:
        await asyncio.to_thread(producer.close)
    return found


def render(found: list[Walk]) -> str:
    """The page."""
    parts = [HEAD]
    for walk in found:
        parts.append(f"## {walk.name}\n\n{walk.about}: {len(walk.files)} files.\n")
        parts.append("\n".join(f"1. [{file}](../../{file})" for file in walk.files) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Trace and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(walks(Path(folder)))
    PAGE.write_text(render(found), encoding="utf-8")
    for walk in found:
        sys.stdout.write(f"{walk.name}: {len(walk.files)} files\n")


if __name__ == "__main__":
    main()
