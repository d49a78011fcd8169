"""Reading records: one fetch in flight per leader, chunks in the order of their arrival.

The caller tracks positions: `assign` sets where to begin, and a chunk says where its partition
continues. A partition is not fetched again before its chunk was consumed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.cli.client.admin.offsets import EARLIEST, list_offsets
from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import LEADER_MOVED, Cluster, leader_of
from rockgate.cli.client.kafka.errors import Refused, Unreachable, Unusable
from rockgate.cli.client.kafka.view import Place, View
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.bounds import WIDEST
from rockgate.protocol.kafka.records.control import MarkerType, read_marker
from rockgate.protocol.kafka.records.record import Record, iterate_records

BY_NAME: Final = 12
"""The last version of Fetch in which a topic goes by its name."""
WAIT_MS: Final = 500
ANSWER_BYTES: Final = 16 << 20
PARTITION_BYTES: Final = 1 << 20
_READ_COMMITTED: Final = 1
_MOVED: Final = LEADER_MOVED | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Chunk(NamedTuple):
    """Records of one partition, the offset they were requested from, and the next one to fetch."""

    place: Place
    start_offset: int
    records: Sequence[Record]
    next_offset: int
    is_append_time: bool


class Fetcher:
    """Reads the partitions it is assigned, from the offsets it is given."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        is_committed: bool = False,
        reset_to: int = EARLIEST,
        wait_ms: int = WAIT_MS,
    ) -> None:
        self._cluster = cluster
        self._is_committed = is_committed
        self._reset_to = reset_to
        self._wait_ms = wait_ms
        self._positions: dict[Place, int] = {}
        self._under_way: dict[int, asyncio.Task[list[Chunk]]] = {}
        self._view: View | None = None
        self.resets: list[tuple[Place, int, int]] = []
        """Partitions whose position lay outside the log: where it was, and where it is now."""

    @property
    def positions(self) -> Mapping[Place, int]:
        """The next offset of each partition."""
        return self._positions

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions and no others; pending fetches of the old ones are dropped."""
        self.stop()
        self._positions = dict(positions)

    def stop(self) -> None:
        """Drop pending fetches."""
        for task in self._under_way.values():
            task.cancel()
        self._under_way.clear()

    async def poll(self) -> list[Chunk]:
        """The first response of any leader; nothing if none has records within its wait time."""
        if not self._positions:
            await asyncio.sleep(self._wait_ms / 1000)
            return []
        await self._start()
        if not self._under_way:
            await asyncio.sleep(self._wait_ms / 1000)
            self._view = None
            return []
        done, _ = await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        chunks: list[Chunk] = []
        for leader, task in list(self._under_way.items()):
            if task in done:
                del self._under_way[leader]
                chunks += await self._taken(task)
        return [chunk for chunk in chunks if self._goes_on(chunk)]

    # Private

    def _goes_on(self, chunk: Chunk) -> bool:
        """Advance the position; a chunk that begins elsewhere was read twice, from two leaders."""
        if self._positions.get(chunk.place) != chunk.start_offset:
            return False
        # To the end of the order, so that a full response does not starve the others.
        del self._positions[chunk.place]
        self._positions[chunk.place] = chunk.next_offset
        return True

    async def _taken(self, task: asyncio.Task[list[Chunk]]) -> list[Chunk]:
        try:
            return task.result()
        except Unreachable:
            # Another broker may lead by now. If there is none, the metadata request fails.
            self._view = None
            await asyncio.sleep(self._wait_ms / 1000)
            return []

    async def _start(self) -> None:
        """Send a fetch to every leader without a pending one."""
        if self._view is None:
            self._view = await self._cluster.found({name for name, _ in self._positions})
        by_leader: dict[int, list[Place]] = {}
        for place in self._positions:
            leader = leader_of(self._view, place)
            if isinstance(leader, Refused):
                if leader.code not in LEADER_MOVED:
                    raise leader.at(place)
            else:
                by_leader.setdefault(leader, []).append(place)
        for leader, places in by_leader.items():
            if leader not in self._under_way:
                broker = self._cluster.node(leader)
                self._under_way[leader] = asyncio.create_task(self._fetch(broker, places))

    async def _fetch(self, broker: Broker, places: list[Place]) -> list[Chunk]:
        topics: dict[str, list[FetchPartition]] = {}
        for place in places:
            part = FetchPartition(
                partition=place[1],
                fetch_offset=self._positions[place],
                partition_max_bytes=PARTITION_BYTES,
            )
            topics.setdefault(place[0], []).append(part)
        asked = dict(self._positions)
        request = FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=ANSWER_BYTES,
            isolation_level=_READ_COMMITTED if self._is_committed else 0,
            topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        )
        answer = await broker.ask(
            request, FetchResponse, version_max=BY_NAME, wait_s=self._wait_ms / 1000
        )
        if answer.error_code:
            raise Refused(answer.error_code, what="fetch")
        chunks = []
        for topic in answer.responses:
            for read in topic.partitions:
                place = (topic.topic, read.partition_index)
                if read.error_code:
                    await self._recover(place, asked[place], read.error_code)
                    continue
                chunk = _open(place, asked[place], read, is_committed=self._is_committed)
                if chunk.next_offset > asked[place]:
                    chunks.append(chunk)
        return chunks

    async def _recover(self, place: Place, position: int, code: int) -> None:
        """Prepare the next attempt, or raise an error that retrying does not fix."""
        if code in _MOVED:
            self._view = None
            await asyncio.sleep(self._wait_ms / 1000)
            return
        if code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise Refused(code).at(place)
        found = (await list_offsets(self._cluster, {place: self._reset_to}))[place]
        if isinstance(found, Refused):
            raise found.at(place)
        self._positions[place] = found.offset
        self.resets.append((place, position, found.offset))


def _open(place: Place, position: int, part: PartitionData, *, is_committed: bool) -> Chunk:
    """The visible records of a response at or after `position`."""
    records: list[Record] = []
    next_offset, is_append_time = position, False
    skipped = _Aborted(part.aborted_transactions or []) if is_committed else None
    try:
        for header, view in batch.split(memoryview(part.records or b"")):
            batch.check(view)
            next_offset = max(next_offset, header.next_offset)
            is_append_time = header.timestamp_type is batch.TimestampType.LOG_APPEND_TIME
            is_visible = skipped is None or skipped.shows(header, view)
            if header.is_control or not is_visible:
                continue
            records += [
                record
                for record in iterate_records(view, bounds=WIDEST)
                if record.offset >= position
            ]
    except MalformedBatch as error:
        raise Unusable(
            f"Cannot decode topic {place[0]} partition {place[1]} at offset {next_offset}: {error}"
        ) from error
    return Chunk(place, position, records, next_offset, is_append_time)


class _Aborted:
    """Which transactions a reader of committed records leaves out, walking batches in order."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(transactions, key=lambda each: each.first_offset)
        self._producers: set[int] = set()

    def shows(self, header: batch.BatchHeader, view: memoryview) -> bool:
        """Whether the records of this batch are visible."""
        while self._coming and self._coming[0].first_offset <= header.last_offset:
            self._producers.add(self._coming.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(view)
            if marker is not None and marker.type is MarkerType.ABORT:
                self._producers.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._producers)
