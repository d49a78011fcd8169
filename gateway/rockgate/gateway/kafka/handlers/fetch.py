"""Fetch: v4-18.

Behaviour
- Whole batches, slices of the log as they are stored, from the one that holds the offset on; never
  past the high watermark. Records are empty, never null, with an error too.
- The request's `max_bytes` and a partition's own bound what is returned, except that the first
  batch of the first partition that has any is returned however large it is.
- Waits until `min_bytes` are there or `max_wait_ms` are over. An error of a partition's log ends
  the wait, and so does a topic that goes; one that was not there does not, unless there is nothing
  else to wait for.
- Sessions as in docs/internals/fetch.md: a poll looks only at partitions that may have news.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, by id UNKNOWN_TOPIC_ID. A session that has seen
  the topic of an id knows its name: then a topic that was deleted is UNKNOWN_TOPIC_OR_PARTITION,
  and one that was created again INCONSISTENT_TOPIC_ID.
- Cold data far behind the end of the log is loaded by a thread before it is sent; thousands of
  partitions are examined in slices.
- What the client may not read is TOPIC_AUTHORIZATION_FAILED, by name also if there is no such
  topic. A request that waited checks again when it is answered, and a session reads everything
  again when grants have changed.
- A batch with delayed records that are not due is sent without them (docs/internals/delay.md).

Versions
- v5: log start offset.  v7: sessions.  v9: leader epoch.  v11: rack (ignored).  v12: flexible, last
  fetched epoch and diverging epoch.  v13: topics by id.  v15: replica state.  v16: new leaders
  (never given: there is one node).  v17, v18: fields of followers.

Departs from Kafka
- A batch is never truncated at the byte limit.
- In a session, partitions beyond `max_bytes` are not examined: a change of their high watermark is
  reported in a later response.
- Requests by followers are rejected: there are none.
- A response that makes a client exceed `consumer_byte_rate` still contains its records; Kafka
  returns none, to be fetched again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol

from rockgate.gateway.kafka.fetch.finder import QueueFinder
from rockgate.gateway.kafka.fetch.partitions import Collector, Finding, ReadsPartitions
from rockgate.gateway.kafka.fetch.session import FetchSession, Wanted, WantedTopic
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.request.handler import Answer, Call, memory_max
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot import fetch as hot
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.messages.fetch import FetchRequest
from rockgate.store.api.log import Place

READ_COMMITTED = 1
SLICE_COUNT = 1_000
"""Partitions read before other requests run."""


class Fetched(NamedTuple):
    """The outcome of a whole request."""

    topics: list[FetchedTopic]
    error_code: int = 0
    session_id: int = 0


LARGE: Final = Fetched([])
"""A response with too many partitions for one turn, which is built in slices."""


def decode(body: memoryview, version: int) -> FetchRequest:
    """Decode a request by hand."""
    return hot.decode_request(version, body, memory_max=memory_max(len(body)))


def encode(fetched: Fetched, version: int) -> Answer:
    """Encode a response by hand; records remain slices of the log."""
    topics, code, session_id = fetched
    return hot.encode_response(version, topics, error_code=code, session_id=session_id)


class FetchThrottling(Protocol):
    """Limits what a client may read."""

    @property
    def is_on(self) -> bool:
        """Whether any quota is set."""

    def fetch_bytes_max(self, call: Call, bytes_max: int) -> int:
        """Return the size that a response may have now."""


class LoadsCold(Protocol):
    """Loads entries from disk by a thread."""

    async def load(self, places: Sequence[Place]) -> None:
        """Load them."""


class PreparesBatches(Protocol):
    """Builds the visible parts of batches."""

    async def prepare(self, places: Iterable[Place]) -> None:
        """Build them."""


class Fetch:
    """Reads partitions, and waits for more."""

    def __init__(
        self,
        *,
        finder: QueueFinder,
        poll_registry: PollRegistry,
        sessions: FetchSessions,
        reader: ReadsPartitions,
        cold_reads: LoadsCold,
        visible_batches: PreparesBatches,
        bytes_max: int,
        throttling: FetchThrottling,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._permitted = None if permitted is UNCHECKED else permitted
        self._grants = permitted.grants
        self._finder = finder
        self._poll_registry = poll_registry
        self._sessions = sessions
        self._reader = reader
        self._cold_reads = cold_reads
        self._visible_batches = visible_batches
        self._bytes_max = bytes_max
        self._throttling = throttling

    def handle(self, request: FetchRequest, call: Call) -> Fetched | Awaitable[Fetched]:
        """Respond with what is available, or wait until there is enough."""
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return self.refuse(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if sum([len(topic.partitions) for topic in request.topics]) > SLICE_COUNT:
            return self._open_in_turns(request, call)
        session = self._sessions.open(request, call.version)
        if isinstance(session, ErrorCode):
            return Fetched([], session)
        return self._read(session, request, call)

    async def _open_in_turns(self, request: FetchRequest, call: Call) -> Fetched:
        """Open a session with many partitions, with other requests in between."""
        session = await self._sessions.open_in_turns(request, call.version)
        if isinstance(session, ErrorCode):
            return Fetched([], session)
        answer = self._read(session, request, call)
        return answer if isinstance(answer, Fetched) else await answer

    def _read(
        self, session: FetchSession, request: FetchRequest, call: Call
    ) -> Fetched | Awaitable[Fetched]:
        collector = Collector(session, self._finder, self._reader)
        if self._permitted is not None:
            collector.reading, collector.peer = self._permitted, call.peer
            collector.generation = generation = self._grants.generation
            if session.id:
                session.note_grants(generation)
            else:
                session.generation = generation
        bytes_max = min(request.max_bytes, self._bytes_max)
        if self._throttling.is_on:
            bytes_max = self._throttling.fetch_bytes_max(call, bytes_max)
        collector.limit(
            min_bytes=min(request.min_bytes, bytes_max),
            max_bytes=bytes_max,
            is_committed=request.isolation_level == READ_COMMITTED,
        )
        session.take_news()
        if len(session.dirty) > SLICE_COUNT:
            return self._in_turns(collector, request.max_wait_ms)
        collector.read(session.dirty)
        if collector.cold:
            return self._in_turns(collector, request.max_wait_ms)
        return self._answer_or_wait(collector, request.max_wait_ms)

    def refuse(self, request: FetchRequest, code: ErrorCode) -> Fetched:
        """Reject every partition, and the whole, with the same error."""
        topics = [
            FetchedTopic(
                topic.topic,
                topic.topic_id,
                [FetchedPartition(each.partition, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        return Fetched(topics, code)

    # Waiting

    async def _in_turns(self, collector: Collector, wait_ms: int) -> Fetched:
        """Read with other requests in between: many partitions, or some that are cold."""
        session = collector.session
        collector.is_in_turns = collector.is_late = True
        session.watch()
        try:
            if collector.cold or not await self._read_in_slices(collector):
                await self._cold_reads.load(collector.cold or ())
                await self._visible_batches.prepare(collector.cold or ())
                collector.begin_again()
                await self._read_in_slices(collector)
            if collector.is_outdated:
                return self._answer(collector)
            # What changed meanwhile is read again; nothing else runs between that and the decision
            # to wait.
            collector.read(session.take_news())
            answer = self._answer_or_wait(collector, wait_ms)
            answer = answer if isinstance(answer, Fetched) else await answer
            return await self._answer_in_slices(collector) if answer is LARGE else answer
        finally:
            if not session.id:
                session.unwatch()

    async def _read_in_slices(self, collector: Collector) -> bool:
        """Read every dirty partition; return whether none of them was cold."""
        partitions = list(collector.session.dirty)
        for at in range(0, len(partitions), SLICE_COUNT):
            if at:
                await asyncio.sleep(0)
            if collector.is_outdated:
                break
            collector.read(partitions[at : at + SLICE_COUNT])
        return not collector.cold

    def _answer_or_wait(
        self, collector: Collector, wait_ms: int
    ) -> Fetched | asyncio.Future[Fetched]:
        session = collector.session
        if wait_ms <= 0 or collector.is_enough or not self._sessions.hold(session):
            return self._answer(collector)
        session.watch()
        collector.is_late = True

        def look(is_last: bool) -> Fetched | None:
            collector.read(session.take_news())
            return self._answer(collector) if is_last or collector.is_enough else None

        def end() -> None:
            if session.poll is poll:
                session.poll = None
            self._sessions.release(session)

        poll = session.poll = self._poll_registry.begin(wait_ms, look, end)
        return poll.future

    # Answering

    def _answer(self, collector: Collector) -> Fetched:
        """Build the answer: everything, or in a session the changes.

        LARGE is returned for more than one slice of it, where there may be several.
        """
        session = collector.session
        if collector.is_outdated:
            return Fetched([], ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        if collector.is_late:
            collector.check_again()
        if collector.is_in_turns and len(collector.found) > SLICE_COUNT:
            return LARGE
        self._keep(collector)
        topics: dict[WantedTopic, list[FetchedPartition]] = {}
        self._report(collector, collector.found.items(), topics)
        return _fetched(session, topics)

    async def _answer_in_slices(self, collector: Collector) -> Fetched:
        """Build the answer for many partitions, with other requests in between."""
        session = collector.session
        self._keep(collector)
        topics: dict[WantedTopic, list[FetchedPartition]] = {}
        left = iter(list(collector.found.items()))
        while some := list(islice(left, SLICE_COUNT)):
            if collector.is_outdated:
                return Fetched([], ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
            self._report(collector, some, topics)
            # What has changed meanwhile may just have been reported as it was before.
            session.keep_news(wanted for wanted, _ in some)
            await asyncio.sleep(0)
        return _fetched(session, topics)

    def _keep(self, collector: Collector) -> None:
        session = collector.session
        if session.is_to_be_cached:
            session.is_to_be_cached = False
            self._sessions.keep(session)
            # It has an epoch from now on.
            collector.epoch = session.epoch

    @staticmethod
    def _report(
        collector: Collector,
        found: Iterable[tuple[Wanted, Finding]],
        topics: dict[WantedTopic, list[FetchedPartition]],
    ) -> None:
        """Add findings to an answer, by topic."""
        session = collector.session
        is_incremental, report = collector.is_incremental, session.report
        is_reporting, is_committed = is_incremental or session.id, collector.is_committed
        for wanted, finding in found:
            fetched = finding[0]
            if is_reporting:
                end = fetched.last_stable_offset if is_committed else fetched.high_watermark
                if not report(wanted, fetched, end) and is_incremental:
                    continue
            partitions = topics.get(wanted.topic)
            if partitions is None:
                partitions = topics[wanted.topic] = []
            partitions.append(fetched)


def _fetched(session: FetchSession, topics: dict[WantedTopic, list[FetchedPartition]]) -> Fetched:
    answered = [FetchedTopic(t.name, t.topic_id, found) for t, found in topics.items()]
    return Fetched(answered, 0, session.id)
