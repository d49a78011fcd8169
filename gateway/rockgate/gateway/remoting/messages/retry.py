"""Retries and dead letters: messages sent back by consumers, or sent to retry topics.

docs/internals/retry.md specifies it. Either way it is one append: a copy that waits together with
its schedule, or a dead letter.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

from rockgate.gateway.delay.headers import LEVEL
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.delay import PRESERVED_FLAGS, WAITING_MARKS
from rockgate.gateway.remoting.messages.sender import CLIENT_FLAGS, Incoming, Taken
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import check_group, group_of
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.transcode import names
from rockgate.gateway.transcode.lookup import FoundMessage
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import pack_properties, parse_properties, unpack_host
from rockgate.protocol.remoting import properties as named
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.ids import offset_message_id
from rockgate.protocol.remoting.system_topics import (
    DLQ_PREFIX,
    HALF_DECISIONS_TOPIC,
    HALF_TOPIC,
    LEVELS_TOPIC,
    RETRY_PREFIX,
    TIMES_TOPIC,
)
from rockgate.store.api.append import Draft
from rockgate.store.api.clock import Clock
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import EPOCH, MAX_MS, TOPIC_ID
from rockgate.store.api.topics import WRITE, Topic

FIRST_LEVEL: Final = 3
"""The delay level of the first retry; each further one has the next."""
TIMES_MAX: Final = 2**31 - 1
OF_THE_LOG: Final = frozenset((TOPIC_ID.decode(), MAX_MS.decode(), EPOCH.decode()))
"""Properties of the entry in the log, not of the message."""
_GONE: Final = OF_THE_LOG | WAITING_MARKS | {named.WAITED_AT, named.DLQ_SINCE, named.DLQ_REASON}
_CLIENTS_NOTES: Final = frozenset((named.MIN_OFFSET, named.MAX_OFFSET, "CONSUME_START_TIME"))
"""Properties that a client adds to a message that it receives; they are not passed on."""
NOT_CONSUMED: Final = frozenset(
    name.encode() for name in (LEVELS_TOPIC, TIMES_TOPIC, HALF_TOPIC, HALF_DECISIONS_TOPIC)
)
"""Topics of undelivered messages; a copy of one would be a duplicate."""
log = logging.getLogger(__name__)


class Reason(Enum):
    """Why a message is a dead letter."""

    TRIES = "tries"
    ASKED = "asked"
    ORDERED = "ordered"


class GivenBack(NamedTuple):
    """A message sent back by a consumer."""

    group: str
    """In RocketMQ's form."""
    level: int
    """Below 0: a dead letter at once; 0: by the number of attempts."""
    times_max: int | None
    """Maximum attempts of the consumer; None for the group's setting."""


class Append(Protocol):
    """How a message is appended to its queue: immediately, or delayed as it requests."""

    def __call__(self, queue: Queue, draft: Draft) -> Taken:
        """Append it; the result may wait for the disk."""


class Retries:
    """Stores retries and dead letters."""

    def __init__(
        self,
        *,
        topics: TopicRegistry,
        queues: Queues,
        settings: GroupSettings,
        clock: Clock,
        append: Append,
        is_ordered: Callable[[str], bool],
        statistics: BrokerStatistics | None = None,
    ) -> None:
        self._statistics = statistics
        self._topics = topics
        self._queues = queues
        self._settings = settings
        self._clock = clock
        self._append = append
        self._is_ordered = is_ordered
        """Whether a group, in RocketMQ's form, currently consumes in order."""
        self.retry_count = 0
        self.dead_counts = dict.fromkeys(Reason, 0)

    def is_discarding(self, group: str) -> bool:
        """Whether a group has retries disabled: what it sends back is dropped."""
        return self._settings.of(group_of(group)).retry_queue_nums <= 0

    def give_back(self, found: FoundMessage, given: GivenBack) -> Taken:
        """36: append a copy of a message as a retry or a dead letter."""
        group = names.to_store(given.group)
        if not group:
            raise Refused(ResponseCode.INVALID_PARAMETER, "Group name is empty.")
        check_group(given.group)
        if found.queue.topic in NOT_CONSUMED:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"Messages of topic {found.queue.topic.decode()} cannot be sent back.",
            )
        settings = self._settings.of(group)
        retry = self._writable(
            self._topics.ensure_queues(RETRY_PREFIX + given.group, settings.retry_queue_nums)
        )
        view = found.message
        entry = envelope.read(view)
        times = entry.reconsume_times
        times_max = settings.retry_max_times if given.times_max is None else given.times_max
        properties = self._first_marks(found, entry)
        _count(properties, min(times + 1, TIMES_MAX), times_max)
        reason = None
        if given.level < 0:
            reason = Reason.ASKED
        elif times >= times_max:
            reason = Reason.TRIES
        if reason is not None:
            queue = self._make_dead_letter(properties, given.group, reason)
        else:
            properties[LEVEL] = str(given.level or FIRST_LEVEL + times)
            queue = self._pick(retry, settings.retry_queue_nums)
        taken = self._append(
            queue,
            Draft(
                topic=b"",
                queue_id=0,
                offset=0,
                body=bytes(view[entry.body_at : entry.body_at + entry.body_size]),
                properties=pack_properties(properties.items()),
                batch_count=0,
                born_ms=entry.born_ms,
                born_host=entry.born_host,
                flag=entry.flag,
                sys_flag=entry.sys_flag & PRESERVED_FLAGS,
                reconsume_times=min(times + 1, TIMES_MAX),
            ),
        )
        self._count_outcome(given.group, properties, reason, is_given_back=True)
        return taken

    def take(self, incoming: Incoming) -> Taken:
        """310 to a retry topic:

        a client sends back by itself, or has exhausted its orderly attempts.
        """
        header, host = incoming.header, incoming.caller.peer.host
        group = names.to_rocketmq(incoming.topic.name.removeprefix(RETRY_PREFIX))
        times, times_max = header.reconsume_times or 0, header.max_reconsume_times
        if times_max is None:
            times_max = self._settings.of(names.to_store(group)).retry_max_times
        given = parse_properties(incoming.properties)
        properties = {name: value for name, value in given.items() if name not in _CLIENTS_NOTES}
        properties.setdefault(named.RETRY_SINCE, str(self._clock.now_ms()))
        _count(properties, times, times_max)
        queue = incoming.queue
        reason = None
        if times > times_max:
            reason = Reason.TRIES
        elif self._is_ordered(group):
            reason = Reason.ORDERED
        if reason is not None:
            for name in WAITING_MARKS:
                properties.pop(name, None)
            queue = self._make_dead_letter(properties, group, reason)
        taken = self._append(
            queue,
            Draft(
                topic=b"",
                queue_id=0,
                offset=0,
                body=incoming.body,
                properties=pack_properties(properties.items()),
                batch_count=0,
                born_ms=header.born_timestamp,
                born_host=host.packed,
                flag=header.flag,
                sys_flag=header.sys_flag & CLIENT_FLAGS | host.flag,
                reconsume_times=times,
            ),
        )
        self._count_outcome(group, properties, reason)
        return taken

    def _count_outcome(
        self,
        group: str,
        properties: Mapping[str, str],
        reason: Reason | None,
        *,
        is_given_back: bool = False,
    ) -> None:
        topic = self._topics.find(properties.get(named.RETRY_TOPIC, ""))
        if self._statistics is not None and topic is not None:
            stored = names.to_store(group)
            if is_given_back:
                self._statistics.sent_back(topic.id, stored, is_dead=reason is not None)
            elif reason is not None:
                self._statistics.buried(topic.id, stored)
        if reason is None:
            self.retry_count += 1
        else:
            self.dead_counts[reason] += 1
            _log_dead_letter(group, properties)

    def _first_marks(self, found: FoundMessage, entry: envelope.Entry) -> dict[str, str]:
        """The message's own properties, with its origin unless they have it."""
        at, size = entry.properties_at, entry.properties_size
        own = parse_properties(bytes(found.message[at : at + size]))
        properties = {name: value for name, value in own.items() if name not in _GONE}
        if not properties.get(named.RETRY_TOPIC):
            topic = found.queue.topic.decode("utf-8", "surrogateescape")
            properties[named.RETRY_TOPIC] = names.to_rocketmq(topic)
            properties[named.RETRY_QUEUE] = str(found.queue.queue_id)
            properties[named.RETRY_OFFSET] = str(found.offset)
        if not properties.get(named.ORIGIN_MESSAGE_ID):
            host = unpack_host(entry.store_host)
            properties[named.ORIGIN_MESSAGE_ID] = offset_message_id(*host, entry.position)
        properties.setdefault(named.RETRY_SINCE, str(self._clock.now_ms()))
        properties[named.WAIT_STORE_OK] = "false"
        return properties

    def _make_dead_letter(self, properties: dict[str, str], group: str, reason: Reason) -> Queue:
        """Add the properties of a dead letter; returns its queue."""
        topic = self._writable(self._topics.ensure_queues(DLQ_PREFIX + group, 1))
        properties[named.DLQ_SINCE] = str(self._clock.now_ms())
        properties[named.DLQ_REASON] = reason.value
        return self._pick(topic, 1)

    def _writable(self, topic: Topic) -> Topic:
        if not topic.permission & WRITE:
            raise Refused(
                ResponseCode.NO_PERMISSION, f"the topic[{topic.name}] sending message is forbidden"
            )
        return topic

    def _pick(self, topic: Topic, count: int) -> Queue:
        queues = self._queues.of(topic.id)
        return queues[random.randrange(max(1, min(count, topic.write_queues)))]


def _count(properties: dict[str, str], times: int, times_max: int) -> None:
    properties[named.RECONSUME_TIME] = str(times)
    properties[named.MAX_RECONSUME_TIMES] = str(times_max)


def _log_dead_letter(group: str, properties: Mapping[str, str]) -> None:
    log.info(
        "dead letter group=%s topic=%s origin=%s tries=%s reason=%s",
        quoted(group),
        quoted(properties.get(named.RETRY_TOPIC, "")),
        quoted(properties.get(named.ORIGIN_MESSAGE_ID, "")),
        quoted(properties[named.RECONSUME_TIME]),
        quoted(properties[named.DLQ_REASON]),
    )
