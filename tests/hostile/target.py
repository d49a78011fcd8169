"""A server under attack, with a well-behaved client beside the attacker.

The bystander produces and reads on its own connection the whole time; a response after its
deadline, or any error, fails the test. At the end the server must have no traceback in its log, and
must have freed what it was sent.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer
from tests.hostile.absurd import Known
from tests.hostile.bystander import Bystander

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import encode

TOPIC = "target"
QUIET = "bystander"
GROWTH_BYTES_MAX = 48 << 20


def one_batch() -> bytes:
    """Two small records."""
    now_ms = int(time.time() * 1000)
    records = [Record(0, now_ms, b"k", b"v"), Record(1, now_ms, None, b"w")]
    return bytes(build_batch(records, base_offset=0))


def frame(key: ApiKey | int, version: int, body: bytes) -> bytes:
    """Encode a request with a correct length and header."""
    client = ClientConnection(client_id="hostile")
    client.send(ApiKey(key), version, [body])
    return b"".join(client.data_to_send())


def request(key: ApiKey, version: int, value: Any) -> bytes:
    """Encode a request from a value."""
    return frame(key, version, encode(value, version))


class KafkaBystander(Bystander):
    """Produces and fetches, one after the other."""

    def __init__(self, server: RunningServer) -> None:
        self._client = RawClient(server)
        self._offset = -1
        super().__init__()

    def do_round(self) -> None:
        self._offset = self._produce(self._offset)
        self._fetch(self._offset - 2)

    def close(self) -> None:
        self._client.socket.close()

    def _produce(self, offset: int) -> int:
        data = [PartitionProduceData(index=0, records=one_batch())]
        value = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=QUIET, partition_data=data)],
        )
        answer = self._client.call(ApiKey.PRODUCE, 9, value, ProduceResponse)
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code == 0, partition
        assert offset in (-1, partition.base_offset), partition
        return partition.base_offset + 2

    def _fetch(self, offset: int) -> None:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        value = FetchRequest(
            max_wait_ms=1000, min_bytes=1, topics=[FetchTopic(topic=QUIET, partitions=[wanted])]
        )
        answer = self._client.call(ApiKey.FETCH, 12, value, FetchResponse)
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == 0 and partition.records, partition


class Target:
    """The server, and possible attacks on it."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.known = self.look()

    def look(self) -> Known:
        """Return what exists; a topic that an attack deleted is created again."""
        with RawClient(self.server) as client:
            names = [MetadataRequestTopic(name=name) for name in (TOPIC, QUIET)]
            answer = client.call(
                ApiKey.METADATA, 12, MetadataRequest(topics=names), MetadataResponse
            )
        ids = {topic.name: topic.topic_id for topic in answer.topics}  # type: ignore[union-attr]
        return Known(topic=TOPIC, topic_id=ids[TOPIC], batch=one_batch())

    def attack(self, data: bytes, *, is_last: bool = True) -> bytes:
        """Send bytes, then close the writing side; return what the server sends until it closes."""
        answer = bytearray()
        with RawClient(self.server) as client, contextlib.suppress(ConnectionError):
            client.socket.sendall(data)
            if is_last:
                with contextlib.suppress(OSError):  # the server may have closed first
                    client.socket.shutdown(socket.SHUT_WR)
            while part := client.socket.recv(1 << 16):
                answer += part
        return bytes(answer)

    def ask(self, data: bytes) -> bytes | None:
        """Send a request and read its response, without its length; None if closed instead."""
        with RawClient(self.server) as client, contextlib.suppress(ConnectionError):
            client.socket.sendall(data)
            head = client.socket.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return None
            (size,) = struct.unpack(">i", head)
            answer = bytearray()
            while len(answer) < size and (part := client.socket.recv(1 << 20)):
                answer += part
            return bytes(answer)
        return None

    @contextlib.contextmanager
    def under_watch(self, *, growth_bytes_max: int = GROWTH_BYTES_MAX) -> Iterator[None]:
        """Check that other clients, the log and the memory are unaffected by the block."""
        self.known = self.look()
        mark, before = len(self.server.log), self.server.resident_bytes
        bystander = KafkaBystander(self.server)
        try:
            bystander.go_round()
            yield
            bystander.go_round()
        finally:
            bystander.stop()
        log = self.server.log[mark:]
        assert "Traceback" not in log and "Z error " not in log, log[-5000:]
        growth = self.server.resident_bytes - before
        assert growth < growth_bytes_max, f"{growth >> 20} MiB more than before"


@contextlib.contextmanager
def running_target(
    directory: Path, settings: Sequence[str] = ("topics.partitions_max=4000",)
) -> Iterator[Target]:
    """A server that may be attacked; it must still stop cleanly.

    Fuzzed names become topics too, so their number is limited.
    """
    with RunningServer(directory, settings=settings) as server:
        target = Target(server)
        yield target
        server.stop_cleanly()
