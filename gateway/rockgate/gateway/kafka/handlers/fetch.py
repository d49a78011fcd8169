"""Fetch: v4-18.

Behaviour
- Whole batches, slices of the log as they lie there, from the one that holds the offset on; never
  past the high watermark. Records are empty, never null, with an error too.
- The request's `max_bytes` and a partition's own bound what is returned, except that the first
  batch of the first partition that has any is returned however large it is.
- Waits until `min_bytes` are there or `max_wait_ms` are over. An error of a partition's log ends
  the wait, and so does a topic that goes; one that was not there does not, unless there is nothing
  else to wait for.
- Sessions as in docs/fetch.md: a poll looks only at partitions that may have news.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, by id UNKNOWN_TOPIC_ID. A session that has seen
  the topic of an id knows its name: then a topic that was deleted is UNKNOWN_TOPIC_OR_PARTITION,
  and one that was created again INCONSISTENT_TOPIC_ID.
- What lies far behind the end of the log is brought in by a thread before it is sent.

Versions
- v5: log start offset.  v7: sessions.  v9: leader epoch.  v11: rack (ignored).  v12: flexible, last
  fetched epoch and diverging epoch.  v13: topics by id.  v15: replica state.  v16: new leaders
  (never given: there is one node).  v17, v18: fields of followers.

Departs from Kafka
- A batch is never cut off at the byte limit.
- In a session, partitions whose turn comes after `max_bytes` are used up are not looked at: that
  their high watermark moved is told with a later answer.
- A request by a follower is refused: there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import NamedTuple

from rockgate.gateway.kafka.fetching import Limits, PartitionReader
from rockgate.gateway.kafka.fetchsession import FetchSession, Wanted, WantedTopic
from rockgate.gateway.kafka.fetchsessions import FetchSessions
from rockgate.gateway.kafka.handler import Answer, memory_max
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.warming import Warming
from rockgate.gateway.waiting import Waiting
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot import fetch as hot
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest
from rockgate.store import bodies
from rockgate.store.consumequeue import Queue
from rockgate.store.store import Store
from rockgate.store.warmth import Place

READ_COMMITTED = 1
BATCHES_MAX = bodies.BATCHES_MAX
"""Batches of one answer, or a few more: small ones would otherwise hold up everybody else."""


class Fetched(NamedTuple):
    """The outcome of a whole request."""

    topics: list[FetchedTopic]
    error_code: int = 0
    session_id: int = 0


def decode(body: memoryview, version: int) -> FetchRequest:
    """Read a request by hand."""
    return hot.decode_request(version, body, memory_max=memory_max(len(body)))


def encode(fetched: Fetched, version: int) -> Answer:
    """Write a response by hand; records stay slices of the log."""
    topics, code, session_id = fetched
    return hot.encode_response(version, topics, error_code=code, session_id=session_id)


class Finding(NamedTuple):
    """What was found of one partition."""

    fetched: FetchedPartition
    size: int = 0
    counted: int = 0
    """Bytes towards `min_bytes`: the limit, if more was there than fits it."""
    is_unknown: bool = False
    """Whether there is no such partition to be read."""


class Gathering:
    """What one request has found so far, partition by partition."""

    __slots__ = (
        "batch_count",
        "cold",
        "counted",
        "epoch",
        "found",
        "is_committed",
        "is_incremental",
        "is_urgent",
        "max_bytes",
        "min_bytes",
        "session",
        "size",
        "unknown_count",
    )

    def __init__(self, request: FetchRequest, session: FetchSession, bytes_max: int) -> None:
        self.session = session
        self.is_incremental = session.id != 0
        self.epoch = session.epoch
        self.is_committed = request.isolation_level == READ_COMMITTED
        self.max_bytes = min(request.max_bytes, bytes_max)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.cold: list[Place] | None = []
        """What has to be brought in from disk; None once that is done."""
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.found: dict[Wanted, Finding] = {}
        self.size = 0
        self.counted = 0
        self.batch_count = 0
        self.unknown_count = 0
        self.is_urgent = False
        """Whether something was found that the client should hear of at once."""

    @property
    def is_enough(self) -> bool:
        """Whether there is a reason to answer now."""
        return (
            self.counted >= self.min_bytes
            or self.is_urgent
            or self.unknown_count >= self.session.count
        )

    @property
    def left(self) -> int:
        """How many bytes more may be taken."""
        return self.max_bytes - self.size if self.batch_count < BATCHES_MAX else 0

    def add(self, wanted: Wanted, finding: Finding) -> None:
        """Take in what was found of a partition."""
        fetched = finding.fetched
        self.found[wanted] = finding
        self.size += finding.size
        self.counted += finding.counted
        if fetched.records:
            self.batch_count += len(fetched.records)
        if finding.is_unknown:
            self.unknown_count += 1
        elif fetched.error_code or fetched.diverging or self.batch_count >= BATCHES_MAX:
            self.is_urgent = True

    def drop(self, wanted: Wanted) -> Finding | None:
        """Forget what was found of a partition, and return it: it is looked at again."""
        finding = self.found.pop(wanted, None)
        if finding is not None:
            self.size -= finding.size
            self.counted -= finding.counted
            self.batch_count -= len(finding.fetched.records or ())
            self.unknown_count -= finding.is_unknown
        return finding


class Fetch:
    """Reads partitions, and waits for more."""

    def __init__(
        self,
        *,
        store: Store,
        waiting: Waiting,
        sessions: FetchSessions,
        reader: PartitionReader,
        warming: Warming,
        bytes_max: int,
    ) -> None:
        self._topics = store.topics
        self._queues = store.queues
        self._waiting = waiting
        self._sessions = sessions
        self._reader = reader
        self._warming = warming
        self._bytes_max = bytes_max

    def handle(self, request: FetchRequest, call: Call) -> Fetched | Awaitable[Fetched]:
        """Read what there is, or wait until there is enough."""
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return self.refuse(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        session = self._sessions.open(request, call.version)
        if isinstance(session, ErrorCode):
            return Fetched([], session)
        gathering = Gathering(request, session, self._bytes_max)
        self._read(gathering, session.dirty)
        if gathering.cold:
            return self._after_faulting_in(gathering, request.max_wait_ms)
        return self._answer_or_wait(gathering, request.max_wait_ms)

    def refuse(self, request: FetchRequest, code: ErrorCode) -> Fetched:
        """Say the same of every partition, and of the whole."""
        topics = [
            FetchedTopic(
                topic.topic,
                topic.topic_id,
                [FetchedPartition(each.partition, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        return Fetched(topics, code)

    # Reading

    def _read(self, gathering: Gathering, wanted_ones: Iterable[Wanted]) -> None:
        """Look at partitions in their order, as far as bytes are left."""
        for wanted in wanted_ones:
            before = gathering.drop(wanted)
            if gathering.left <= 0 and gathering.size and gathering.is_incremental:
                return
            queue = self._find(wanted)
            if isinstance(queue, ErrorCode):
                # What is gone since we looked is told at once; what was not there is not.
                is_unknown = before is None or before.is_unknown
                is_unknown &= queue is not ErrorCode.INCONSISTENT_TOPIC_ID
                fetched = FetchedPartition(wanted.asked.partition, queue, aborted=())
                gathering.add(wanted, Finding(fetched, is_unknown=is_unknown))
            else:
                gathering.add(wanted, self._read_one(gathering, queue, wanted.asked))

    def _read_one(self, gathering: Gathering, queue: Queue, asked: FetchPartition) -> Finding:
        cold = gathering.cold
        already_cold = len(cold) if cold is not None else 0
        size_max = max(0, min(gathering.left, asked.partition_max_bytes))
        limits = Limits(size_max, gathering.size == 0, gathering.is_committed, cold)
        fetched, is_cut = self._reader.read(queue, asked, limits)
        size = sum(map(len, fetched.records)) if fetched.records else 0
        if cold is not None and len(cold) > already_cold:
            size += sum(place[1] for place in cold[already_cold:])
        return Finding(fetched, size, max(size, size_max) if is_cut else size)

    def _find(self, wanted: Wanted) -> Queue | ErrorCode:
        """Return the queue behind a partition, or why there is none to be read."""
        asked = wanted.topic
        by_id = wanted.session.uses_ids
        topic = (
            self._topics.find_id(asked.topic_id) if by_id else self._topics.find(asked.store_name)
        )
        if topic is not None:
            asked.store_name = topic.name
            queues = self._queues.of(topic.id)
            index = wanted.asked.partition
            if 0 <= index < len(queues) and topic.is_readable:
                queue = queues[index]
                if queue is not wanted.queue:
                    wanted.session.bind(wanted, queue)
                return queue
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not topic.is_readable:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif by_id and not asked.store_name:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif by_id and self._topics.find(asked.store_name) is not None:
            code = ErrorCode.INCONSISTENT_TOPIC_ID
        else:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wanted.session.bind(wanted, None)
        return code

    # Waiting

    async def _after_faulting_in(self, gathering: Gathering, wait_ms: int) -> Fetched:
        """Let a thread bring in what is cold, and then begin again."""
        await self._warming.bring_in(gathering.cold or ())
        gathering.cold = None
        gathering.clear()
        self._read(gathering, gathering.session.dirty)
        answer = self._answer_or_wait(gathering, wait_ms)
        return answer if isinstance(answer, Fetched) else await answer

    def _answer_or_wait(
        self, gathering: Gathering, wait_ms: int
    ) -> Fetched | asyncio.Future[Fetched]:
        session = gathering.session
        if wait_ms <= 0 or gathering.is_enough or not self._sessions.hold(session):
            return self._answer(gathering)
        session.news.clear()
        session.watch()

        def look(is_last: bool) -> Fetched | None:
            news = list(session.news)
            session.news.clear()
            self._read(gathering, news)
            return self._answer(gathering) if is_last or gathering.is_enough else None

        def end() -> None:
            if session.poll is poll:
                session.poll = None
            self._sessions.release(session)

        poll = session.poll = self._waiting.begin(wait_ms, look, end)
        return poll.future

    # Answering

    def _answer(self, gathering: Gathering) -> Fetched:
        """Put together what was found: everything, or in a session the news."""
        session = gathering.session
        if gathering.is_incremental and session.epoch != gathering.epoch:
            return Fetched([], ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        if session.is_to_be_kept:
            session.is_to_be_kept = False
            self._sessions.keep(session)
        is_committed, is_kept = gathering.is_committed, session.id != 0
        topics: dict[WantedTopic, list[FetchedPartition]] = {}
        for wanted, (fetched, _, _, _) in gathering.found.items():
            if is_kept:
                end = fetched.last_stable_offset if is_committed else fetched.high_watermark
                has_news = session.tell(wanted, fetched, end)
                if gathering.is_incremental and not has_news:
                    continue
            partitions = topics.get(wanted.topic)
            if partitions is None:
                partitions = topics[wanted.topic] = []
            partitions.append(fetched)
        answered = [FetchedTopic(t.name, t.topic_id, found) for t, found in topics.items()]
        return Fetched(answered, 0, session.id)
