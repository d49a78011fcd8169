"""The data of a server before it gets the largest requests, and the shape of such a request.

Ten thousand topics, most of one partition and one of ten thousand; fifty thousand groups with one
committed offset each, one with an offset in every topic, and one with members; a thousand
transactional ids, one of them with every topic in its transaction. Everything is loaded by client
requests in well under a minute, many in flight at a time.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar

from bench.load.rdkafka import LoadFailed
from bench.peers.answers import Address
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import ClientConnection, Response
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.command import decode as decode_command
from rockgate.protocol.remoting.command import encode as encode_command

T = TypeVar("T")
SECONDS_MAX = 120.0
CHUNK = 1_000
MEMORY_MAX = 1 << 30
_LENGTH_SIZE = 4
WIDE = "wide"
GROUP_OF_ALL = "all-topics"
TRANSACTION_OF_ALL = "txn-0"
ADD_PARTITIONS_VERSION = 3
COMMIT_VERSION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The amount of data."""

    topics: int
    groups: int
    transactions: int
    partitions: int
    """Of the one topic that has many."""
    items: int
    """The number of names in a request, if the frame size does not limit it."""


FULL = Size(topics=10_000, groups=50_000, transactions=1_000, partitions=10_000, items=100_000)
QUICK = Size(topics=100, groups=500, transactions=10, partitions=100, items=1_000)


@dataclass(slots=True, kw_only=True)
class Loaded:
    """The loaded data, for functions that make requests."""

    listeners: dict[str, Address]
    """By name: kafka, remoting, namesrv, http."""
    size: Size
    topics: list[str] = field(default_factory=list)
    topic_ids: list[bytes] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    producers: list[tuple[int, int]] = field(default_factory=list)
    """Id and epoch of each transaction's producer."""
    members: list[socket.socket] = field(default_factory=list)
    """Connections of group members, open until the end."""
    prepared: dict[str, list[Command]] = field(default_factory=dict)
    """Cached responses to requests that several rows share, by name."""

    def tell(self, *frames: bytes) -> list[Command]:
        """Send requests to the RocketMQ listener on a new connection; return the responses."""
        if "remoting" not in self.listeners:
            return []
        with socket.create_connection(
            self.listeners["remoting"], timeout=SECONDS_MAX
        ) as connection:
            return tell(connection, *frames)

    def call(self, frame: bytes) -> None:
        """Send a request to the Kafka listener and wait for the response."""
        with socket.create_connection(self.listeners["kafka"], timeout=SECONDS_MAX) as connection:
            connection.sendall(frame)
            with connection.makefile("rb") as stream:
                stream.read(int.from_bytes(stream.read(_LENGTH_SIZE), "big"))

    @staticmethod
    def body_of(answer: Command) -> dict[str, Any]:
        """The JSON of a response; empty if it was rejected."""
        return {} if answer.code else json.loads(bytes(answer.body))

    def many(self, names: Sequence[str]) -> list[str]:
        """As many names as a request may have: existing ones, then missing ones."""
        more = (f"none-{number}" for number in range(self.size.items - len(names)))
        return [*names, *more][: self.size.items]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One row of the table of requests."""

    name: str
    """What is requested, and how much of it."""
    listener: str
    """kafka, remoting, namesrv or http."""
    make: Callable[[Loaded], Iterable[bytes]]
    """The frames, with their lengths; only the last one is measured."""
    is_changing: bool = False
    """Whether it can be sent only once."""
    has_answer: bool = True
    count: int = 1
    """The number of requests in the last frames, which are sent in one write."""
    half_sent_by: int = 0
    """How many connections send it without its last byte and disconnect; 0 for a whole request."""


def tell(connection: socket.socket, *frames: bytes) -> list[Command]:
    """Send RocketMQ requests in sequence; return the responses in that order."""
    answers = []
    with connection.makefile("rb") as stream:
        for frame in frames:
            connection.sendall(frame)
            answers.append(read_command(connection, stream))
    return answers


def read_command(connection: socket.socket, stream: BinaryIO) -> Command:
    """Read up to a response; requests of the server are answered as a client would."""
    while True:
        head = stream.read(_LENGTH_SIZE)
        if len(head) < _LENGTH_SIZE:
            raise ConnectionError("the server closed the connection")
        command = decode_command(memoryview(stream.read(int.from_bytes(head, "big"))))
        if command.is_answer:
            return command
        if not command.is_oneway:
            connection.sendall(encode_command(Command(0, opaque=command.opaque, flag=1)))


def kafka_frame(key: ApiKey, request: Any, version: int | None = None) -> bytes:
    """Encode a request, in the newest version by default."""
    version = APIS[key].versions.max if version is None else version
    connection = ClientConnection(client_id="bench")
    connection.send(key, version, [encode(request, version)])
    return b"".join(connection.data_to_send())


class Loader:
    """A connection with many requests in flight."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=SECONDS_MAX)
        self._connection = ClientConnection(client_id="load")

    def call_all(self, key: ApiKey, version: int, requests: Iterable[Any]) -> list[Response]:
        """Send all requests while reading the responses; return these."""
        bodies = [encode(each, version) for each in requests]
        for body in bodies:
            self._connection.send(key, version, [body])
        data = b"".join(self._connection.data_to_send())
        sender = threading.Thread(target=self._socket.sendall, args=(data,))
        sender.start()
        answers: list[Response] = []
        while len(answers) < len(bodies):
            piece = self._socket.recv(1 << 18)
            if not piece:
                raise LoadFailed("the server closed the connection")
            answers += self._connection.receive_data(piece)
        sender.join()
        return answers

    def call(self, key: ApiKey, version: int, request: Any, response: type[T]) -> T:
        """Send one request."""
        (answer,) = self.call_all(key, version, [request])
        return decode(response, version, answer.body, memory_max=MEMORY_MAX)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def load(listeners: dict[str, Address], size: Size) -> Loaded:
    """Load everything into a server."""
    world = Loaded(listeners=listeners, size=size)
    loader = Loader(listeners["kafka"])
    _load_topics(loader, world)
    _load_groups(loader, world)
    _load_transactions(loader, world)
    loader.close()
    return world


def _load_topics(loader: Loader, world: Loaded) -> None:
    size = world.size
    names = [f"topic-{number:05d}" for number in range(size.topics - 1)]
    news = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    news.append(CreatableTopic(name=WIDE, num_partitions=size.partitions, replication_factor=1))
    for at in range(0, len(news), CHUNK):
        request = CreateTopicsRequest(topics=news[at : at + CHUNK])
        answer = loader.call(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
        for topic in answer.topics:
            assert isinstance(topic, CreatableTopicResult), "decoded"
            if topic.error_code:
                raise LoadFailed(f"topic {topic.name} was refused: {topic.error_message}")
            world.topics.append(topic.name)
            world.topic_ids.append(topic.topic_id)


def commit(group: str, topics: Iterable[str], metadata: str = "") -> OffsetCommitRequest:
    """A commit of offset 1 in partition 0 of each topic."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in topics],
    )


def _load_groups(loader: Loader, world: Loaded) -> None:
    names = [f"group-{number:05d}" for number in range(world.size.groups - 1)]
    for at in range(0, len(names), CHUNK):
        some = (commit(name, world.topics[:1]) for name in names[at : at + CHUNK])
        loader.call_all(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, some)
    loader.call_all(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, [commit(GROUP_OF_ALL, world.topics)])
    world.groups = [*names, GROUP_OF_ALL]


def _load_transactions(loader: Loader, world: Loaded) -> None:
    world.transactions = [f"txn-{number}" for number in range(world.size.transactions)]
    asked = (
        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
        for name in world.transactions
    )
    for answer in loader.call_all(ApiKey.INIT_PRODUCER_ID, 4, asked):
        given = decode(InitProducerIdResponse, 4, answer.body)
        if given.error_code:
            raise LoadFailed(f"a transactional id was refused with code {given.error_code}")
        world.producers.append((given.producer_id, given.producer_epoch))
    producer_id, producer_epoch = world.producers[0]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION_OF_ALL,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in world.topics
        ],
    )
    loader.call_all(ApiKey.ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS_VERSION, [request])
