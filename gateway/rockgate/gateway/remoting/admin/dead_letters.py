"""Dead letters for administrators: counted by group, read, and resent to their original topic.

docs/internals/retry.md lists the properties of a dead letter. A resend is one atomic group: the
message in its first topic, without those properties, and a record that this dead letter was resent.
So it is resent once, despite crashes and repeated requests, unless another resend is requested
explicitly. The dead letter itself stays where it is until retention deletes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from rockgate.gateway.groups.ownership import GroupRegister
from rockgate.gateway.remoting.admin.resent import TOPIC, Resent
from rockgate.gateway.remoting.admin.views import looked_at
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.delay import PRESERVED_FLAGS
from rockgate.gateway.remoting.messages.retry import OF_THE_LOG
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.transcode import names
from rockgate.gateway.transcode.lookup import End
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import MAGIC_BATCH, pack_properties, parse_properties, places
from rockgate.protocol.remoting import properties as named
from rockgate.protocol.remoting.bodies.admin import (
    DeadLetter,
    DeadLetterPage,
    DeadLetterQueue,
    DeadLetterQueues,
    MessageView,
    Resend,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.headers.admin import (
    ReadDeadLettersHeader,
    ResendDeadLetterHeader,
)
from rockgate.protocol.remoting.system_topics import DLQ_PREFIX, RETRY_PREFIX
from rockgate.store.api.append import Draft, Intake, StateAppender
from rockgate.store.api.progress import CommittedOffsets
from rockgate.store.api.queues import Queue, Queues, Unit
from rockgate.store.api.read import EntryReader, Slice
from rockgate.store.api.topics import WRITE, Topic, TopicLookup

LIMIT_MAX: Final = 200
PAGE_BYTES: Final = 4 << 20
"""Entries of one page: each of them is read."""
QUEUES_MAX: Final = 10_000
OFFSETS_PER_TURN: Final = 200
"""Offsets that are read before other requests run: most may have no message."""
RESENT_FROM: Final = "__RESENT_FROM"


class _Letter(NamedTuple):
    queue: Queue
    offset: int
    message: memoryview
    """As a pull would return it."""


class KnownGroups:
    """Returns whether a group is known, by its name in the store."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        progress: CommittedOffsets,
        clients: Clients,
        settings: GroupSettings,
        groups: GroupRegister,
    ) -> None:
        self._topics = topics
        self._progress = progress
        self._clients = clients
        self._settings = settings
        self._groups = groups

    def __call__(self, group: str) -> bool:
        """Whether it has members, settings, offsets, or messages to be retried."""
        return (
            self._clients.consumer_group(group) is not None
            or self._settings.is_set(group)
            or self._topics.find(RETRY_PREFIX + group) is not None
            or next(self._progress.fetch_group(group), None) is not None
            or self._groups.describe(group) is not None
        )


class DeadLetterAdmin:
    """Lists and resends dead letters."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: EntryReader,
        appender: StateAppender,
        cold_reads: ColdReads,
        resent: Resent,
        transcoder: Transcoder,
        end: End,
        knows: Callable[[str], bool] = lambda group: True,
    ) -> None:
        self._end = end
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._appender = appender
        self._cold_reads = cold_reads
        self._knows = knows
        self._resent = resent
        self._transcoder = transcoder
        self.resent_count = 0

    async def queues(self, group: str | None = None) -> DeadLetterQueues:
        """Return all dead-letter queues, or a group's, with their counts and oldest times.

        An unknown group is rejected, unlike one without dead letters.
        """
        found: list[DeadLetterQueue] = []
        share = TimeSlice(TURN_SECONDS)
        topics: Iterable[Topic] = self._topics
        if group is not None:
            topic = self._topics.find(DLQ_PREFIX + group)
            if topic is None and not self._knows(group):
                reason = f"Group '{group}' does not exist."
                raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
            topics = () if topic is None else (topic,)
        for topic in topics:
            if share.is_over():
                await asyncio.sleep(0)
                share = TimeSlice(TURN_SECONDS)
            if not topic.name.startswith(DLQ_PREFIX):
                continue
            for queue in self._queues.of(topic.id):
                first = queue.find(queue.log_start)
                end = self._end(queue)
                last = queue.find(end - 1) if end > queue.log_start else None
                found.append(
                    DeadLetterQueue(
                        group=topic.name.removeprefix(DLQ_PREFIX),
                        queue=queue.queue_id,
                        start=queue.log_start,
                        end=end,
                        oldest_ms=-1 if first is None or last is None else first.store_ms,
                        newest_ms=-1 if last is None else last.store_ms,
                    )
                )
            if len(found) >= QUEUES_MAX:
                break
        return DeadLetterQueues(queues=found)

    async def page(self, asked: ReadDeadLettersHeader) -> DeadLetterPage:
        """Return dead letters of a queue from an offset on."""
        queue = self._queue(asked.group, asked.queue)
        limit = max(1, min(asked.limit, LIMIT_MAX))
        end = self._end(queue)
        offset = max(asked.offset, queue.log_start)
        letters: list[DeadLetter] = []
        size = 0
        while offset < end and len(letters) < limit and size < PAGE_BYTES:
            found = await self._entry(queue, offset)
            if found is None:
                break
            size += found.unit.size
            stop = min(found.unit.base + found.unit.offset_count, end)
            while offset < stop and len(letters) < limit:
                letter = await self._letter(queue, found, offset)
                if letter is not None:
                    message = await looked_at(
                        self._transcoder.threads, found, offset, asked.preview
                    )
                    letters.append(self._described(letter, message))
                offset += 1
                if not offset % OFFSETS_PER_TURN:
                    await asyncio.sleep(0)
        return DeadLetterPage(letters=letters, next=offset if offset < end else -1)

    async def resend(self, asked: ResendDeadLetterHeader) -> tuple[Resend, bool]:
        """Resend a dead letter to its original topic, or to another one.

        Also returns whether the topic requires a flush before the response.
        """
        queue = self._queue(asked.group, asked.queue)
        found = await self._entry(queue, asked.offset)
        letter = None if found is None else await self._letter(queue, found, asked.offset)
        if letter is None:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, "Dead letter does not exist.")
        if self._resent.has(queue, asked.offset) and not asked.again:
            return Resend(is_resent=False), False
        target, draft = self._draft(letter, asked.to)
        if asked.dry_run:
            name, number = target.topic.decode(), target.queue_id
            return Resend(is_resent=True, topic=name, queue=number, offset=-1), False
        change = self._resent.change(queue, asked.offset, self._queues)
        done, _ = self._appender.group(
            [
                Intake(target, draft),
                Intake(None, Draft(topic=TOPIC, queue_id=0, offset=-1, body=change)),
            ]
        )
        self.resent_count += 1
        resend = Resend(
            is_resent=True, topic=target.topic.decode(), queue=target.queue_id, offset=done.offset
        )
        return resend, target.is_sync

    # Private

    def _queue(self, group: str, queue_id: int) -> Queue:
        topic = self._topics.find(DLQ_PREFIX + group)
        queue = None if topic is None else self._queues.find(topic.id, queue_id)
        if queue is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"Group '{group}' has no dead letters in queue {queue_id}.",
            )
        return queue

    async def _entry(self, queue: Queue, offset: int) -> Slice | None:
        if not queue.log_start <= offset < self._end(queue):
            return None
        unit = queue.find(offset)
        if unit is None or not _holds(unit, offset):
            return None
        await self._cold_reads.load(self._cold_reads.cold([unit]))
        unit = queue.find(offset)
        return None if unit is None else self._reader.entry(queue, unit)

    async def _letter(self, queue: Queue, found: Slice, offset: int) -> _Letter | None:
        """One dead letter; a Kafka client may have put a batch of them there."""
        if places(found.entry, 0)[1] != MAGIC_BATCH:
            return _Letter(queue, offset, found.entry)
        message = await self._transcoder.read(found, offset)
        return None if message is None else _Letter(queue, offset, message)

    def _described(self, letter: _Letter, message: MessageView) -> DeadLetter:
        entry = envelope.read(letter.message)
        properties = _properties(letter.message, entry)
        return DeadLetter(
            group=letter.queue.topic.decode().removeprefix(DLQ_PREFIX),
            queue=letter.queue.queue_id,
            offset=letter.offset,
            origin_topic=names.to_store(properties.get(named.RETRY_TOPIC, "")) or None,
            origin_queue=_number(properties.get(named.RETRY_QUEUE)),
            origin_offset=_number(properties.get(named.RETRY_OFFSET)),
            origin_message_id=properties.get(named.ORIGIN_MESSAGE_ID),
            failed_ms=_number(properties.get(named.RETRY_SINCE)),
            dead_ms=_number(properties.get(named.DLQ_SINCE)),
            reason=properties.get(named.DLQ_REASON),
            is_resent=self._resent.has(letter.queue, letter.offset),
            message=message,
        )

    def _draft(self, letter: _Letter, to: str | None) -> tuple[Queue, Draft]:
        view, entry = letter.message, envelope.read(letter.message)
        properties = _properties(view, entry)
        name = to or names.to_store(properties.get(named.RETRY_TOPIC, ""))
        if not name:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "original topic is unknown")
        topic = self._topics.find(name)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic {name} no longer exists")
        if not topic.permission & WRITE:
            raise Refused(ResponseCode.NO_PERMISSION, f"topic {name} is not writable")
        number = _number(properties.get(named.RETRY_QUEUE))
        queues = self._queues.of(topic.id)
        queue = queues[
            number if to is None and 0 <= number < len(queues) else letter.offset % len(queues)
        ]
        remaining = {n: v for n, v in properties.items() if n not in named.RETRY_MARKS}
        group = letter.queue.topic.decode().removeprefix(DLQ_PREFIX)
        remaining[RESENT_FROM] = f"{group}/{letter.queue.queue_id}/{letter.offset}"
        draft = Draft(
            topic=b"",
            queue_id=0,
            offset=0,
            body=bytes(view[entry.body_at : entry.body_at + entry.body_size]),
            properties=pack_properties(remaining.items()),
            batch_count=0,
            born_ms=entry.born_ms,
            born_host=entry.born_host,
            flag=entry.flag,
            sys_flag=entry.sys_flag & PRESERVED_FLAGS,
        )
        return queue, draft


def _holds(unit: Unit, offset: int) -> bool:
    return unit.base <= offset < unit.base + unit.offset_count


def _properties(view: memoryview, entry: envelope.Entry) -> dict[str, str]:
    at, size = entry.properties_at, entry.properties_size
    own = parse_properties(bytes(view[at : at + size]))
    return {name: value for name, value in own.items() if name not in OF_THE_LOG}


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else -1
