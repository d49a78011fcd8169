"""A client's side of Fetch, for tests of the handler: requests in, decoded responses out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from itertools import count

from tests.gateway.kafka.world import KafkaWorld, call
from tests.store.journals import MemoryJournal

from rockgate.gateway.kafka.fetch.finder import Finder
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.handlers import fetch
from rockgate.gateway.kafka.handlers.fetch import Fetch, Fetched
from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from rockgate.protocol.kafka.records.batch import split
from rockgate.protocol.kafka.records.record import Record, read_records
from rockgate.protocol.kafka.schema import ZERO_UUID, decode

MIB = 1 << 20
Key = tuple[str, int]


class Asked:
    """The request for one partition."""

    def __init__(
        self,
        offset: int = 0,
        size_max: int = MIB,
        *,
        leader_epoch: int = -1,
        last_epoch: int = -1,
        topic_id: bytes | None = None,
    ) -> None:
        self.offset = offset
        self.size_max = size_max
        self.leader_epoch = leader_epoch
        self.last_epoch = last_epoch
        self.topic_id = topic_id


def no_quotas() -> StoredQuotas:
    return StoredQuotas(MemoryJournal())


class Fetcher:
    """Sends requests to the handler and decodes its responses."""

    def __init__(
        self,
        world: KafkaWorld,
        version: int = 12,
        *,
        bytes_max: int = 55 * MIB,
        sessions_max: int = 1000,
        partitions_max: int = 100_000,
        throttling: Throttling | None = None,
    ) -> None:
        self.world = world
        self.version = version
        ids = count(100)
        self.sessions = FetchSessions(
            world.poll_registry,
            world.clock,
            sessions_max=sessions_max,
            partitions_max=partitions_max,
            new_id=lambda: next(ids),
        )
        self.handler = Fetch(
            finder=Finder(world.store.topics, world.store.queues),
            poll_registry=world.poll_registry,
            sessions=self.sessions,
            reader=world.partitions,
            cold_reads=world.cold_reads,
            visible_batches=world.delays.visible_batches,
            bytes_max=bytes_max,
            throttling=throttling
            or Throttling(quotas=no_quotas(), config=QuotasConfig(), clock=world.hand),
        )

    def request(
        self,
        asked: Mapping[Key, Asked],
        *,
        wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 50 * MIB,
        isolation_level: int = 0,
        session: tuple[int, int] = (0, -1),
        forget: Sequence[Key] = (),
        replica_id: int = -1,
    ) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        ids = {name: each.topic_id for (name, _), each in asked.items()}
        for (name, index), each in asked.items():
            topics.setdefault(name, []).append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=each.leader_epoch,
                    fetch_offset=each.offset,
                    last_fetched_epoch=each.last_epoch,
                    partition_max_bytes=each.size_max,
                )
            )
        return FetchRequest(
            replica_id=replica_id if self.version < 15 else -1,
            replica_state=ReplicaState(replica_id=replica_id if self.version >= 15 else -1),
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session[0],
            session_epoch=session[1],
            topics=[
                FetchTopic(topic=name, topic_id=ids[name] or self.topic_id(name), partitions=found)
                for name, found in topics.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=name, topic_id=self.topic_id(name), partitions=[index])
                for name, index in forget
            ],
        )

    def topic_id(self, name: str) -> bytes:
        topic = self.world.store.topics.find(name)
        return ZERO_UUID if topic is None else topic.id

    def send(self, request: FetchRequest) -> Fetched | Awaitable[Fetched]:
        if self.version < 13:
            for topic in request.topics:
                topic.topic_id = ZERO_UUID
        else:
            for topic in request.topics:
                topic.topic = ""
        return self.handler.handle(request, call(self.version))

    def fetch(self, asked: Mapping[Key, Asked] | None = None, **options: object) -> Answer:
        """Send a request that must be answered at once."""
        fetched = self.send(self.request(asked or {}, **options))  # type: ignore[arg-type]  # as above
        assert isinstance(fetched, Fetched), "it waits"
        return Answer(self, fetched)

    def waiting(self, asked: Mapping[Key, Asked], **options: object) -> asyncio.Future[Fetched]:
        """Send a request for what does not exist yet."""
        fetched = self.send(self.request(asked, **options))  # type: ignore[arg-type]  # as above
        assert not isinstance(fetched, Fetched), "it does not wait"
        return asyncio.ensure_future(fetched)


class Answer:
    """A decoded response."""

    def __init__(self, fetcher: Fetcher, fetched: Fetched) -> None:
        buffers = fetch.encode(fetched, fetcher.version)
        self.buffers = buffers
        body = b"".join(buffers)
        self.response = decode(FetchResponse, fetcher.version, body, memory_max=100 * MIB)
        topics = fetcher.world.store.topics
        self.partitions: dict[Key, PartitionData] = {}
        for each in self.response.responses:
            found = topics.find_id(each.topic_id)
            name = each.topic or (found.name if found else "")
            for partition in each.partitions:
                assert partition.records is not None, "records are never null"
                self.partitions[name, partition.partition_index] = partition

    @property
    def error_code(self) -> int:
        return self.response.error_code

    @property
    def session_id(self) -> int:
        return self.response.session_id

    @property
    def errors(self) -> dict[Key, int]:
        return {key: each.error_code for key, each in self.partitions.items()}

    def records(self, name: str = "orders", partition: int = 0) -> list[Record]:
        found = memoryview(self.partitions[name, partition].records or b"")
        return [record for _, view in split(found) for record in read_records(view)]

    def offsets(self, name: str = "orders", partition: int = 0) -> list[int]:
        return [record.offset for record in self.records(name, partition)]

    @property
    def sizes(self) -> dict[Key, int]:
        return {key: len(each.records or b"") for key, each in self.partitions.items()}


ONE: Key = ("orders", 0)
