"""A received message: what its producer set, where it was stored, and how to settle it.

Thousands are cached and most of their fields are never read, so a message retains its bytes and
decodes them on access. Its envelope is validated on arrival: access cannot fail, except for a
compressed body.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, Self

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    Entry,
    EntryError,
    pack_host,
    pack_properties,
    parse_properties,
    unpack_host,
)
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.compression import compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.ids import offset_message_id
from rockgate.protocol.remoting.message import encode
from rockgate.sdk.errors import SdkError
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.namespaces import unwrap, unwrap_queue
from rockgate.sdk.results import Queue

INFLATED_SIZE_MAX: Final = 64 << 20
"""The maximum size of a decompressed body."""
MS_DIGITS_MAX: Final = 14
"""More digits are no milliseconds since 1970 that a datetime can hold."""
NOWHERE: Final = pack_host(bytes(4), 0)


class Settlement(Protocol):
    """Is notified that a message is finished, or to be redelivered."""

    async def finish(self, message: Received) -> None:
        """It is consumed."""

    async def retry(self, message: Received, after: timedelta | None) -> None:
        """It is to be delivered again."""

    async def dead_letter(self, message: Received) -> None:
        """It is not to be delivered again."""


class Received:
    """A message of a topic. Two are the same message if their `message_id` is the same."""

    __slots__ = (
        "_body",
        "_properties",
        "_raw",
        "_settlement",
        "body_size",
        "namespace",
        "offset",
        "retries_here",
        "source",
        "started_at_s",
        "was_retried",
        "was_settled",
    )

    def __init__(
        self,
        raw: bytes,
        read: Entry,
        queue: Queue,
        settlement: Settlement | None = None,
        namespace: str = "",
    ) -> None:
        self._raw = raw
        self._settlement = settlement
        self.namespace = namespace
        """The namespace, which the application does not see in names."""
        self._body: bytes | None = None
        self._properties: dict[str, str] | None = None
        self.source = queue
        """The queue that it was read from, by its topic's name on the wire."""
        self.was_settled = False
        """Whether `ack`, `retry` or `dead_letter` was called."""
        self.was_retried = False
        self.offset = read.queue_offset
        self.body_size = read.body_size
        """Size of its body as received, perhaps compressed."""
        self.retries_here = 0
        """How often it was redelivered in order, since it was pulled."""
        self.started_at_s: float | None = None
        """When a listener began with it, by the loop's clock."""

    @classmethod
    def of(
        cls, topic: str, body: bytes, *, properties: Mapping[str, str] | None = None, flag: int = 0
    ) -> Self:
        """A message that is not stored anywhere, for tests of listeners and checkers."""
        raw = encode(
            topic=topic.encode(),
            body=body,
            properties=pack_properties((properties or {}).items()),
            flag=flag,
            queue_id=0,
            queue_offset=0,
            position=0,
            born_ms=0,
            born_host=NOWHERE,
            store_ms=0,
            store_host=NOWHERE,
        )
        return cls(raw, envelope.read(raw, 0), Queue(topic, "", 0))

    def __repr__(self) -> str:
        where = f"{self.queue.broker}/{self.queue.id}@{self.offset}"
        return f"<Received {self.topic} {where} {self.message_id}>"

    # What its producer set

    @property
    def topic(self) -> str:
        """The topic that it was sent to, also when it is redelivered from a retry topic."""
        return unwrap(self.namespace, self.wire_topic)

    @property
    def wire_topic(self) -> str:
        """The same with its namespace, if it has one."""
        topic = self.source.topic or self._read.topic.decode("utf-8", "surrogateescape")
        if not topic.startswith(RETRY_PREFIX):
            return topic
        return self.properties.get(names.RETRY_TOPIC) or topic

    @property
    def origin_topic(self) -> str:
        """The topic that it was first sent to: of a dead letter the one that it was consumed in."""
        return unwrap(self.namespace, self.properties.get(names.RETRY_TOPIC) or self.wire_topic)

    @property
    def body(self) -> bytes:
        """The body, decompressed."""
        if self._body is None:
            read = self._read
            body = self._raw[read.body_at : read.body_at + read.body_size]
            kind = compression_of(read.sys_flag)
            self._body = (
                body if kind is None else decompress(body, kind, size_max=INFLATED_SIZE_MAX)
            )
        return self._body

    @property
    def properties(self) -> Mapping[str, str]:
        """All properties of the message, RocketMQ's own included."""
        if self._properties is None:
            read = self._read
            at = read.properties_at
            self._properties = parse_properties(self._raw[at : at + read.properties_size])
        return self._properties

    @property
    def tag(self) -> str | None:
        """Its tag."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys by which it can be looked up."""
        return tuple(filter(None, self.properties.get(names.KEYS, "").split(names.KEY_SEPARATOR)))

    @property
    def key(self) -> str | None:
        """Its first key."""
        return next(iter(self.keys), None)

    @property
    def flag(self) -> int:
        """A number of the application's own."""
        return self._read.flag

    # Outcome

    @property
    def queue(self) -> Queue:
        """Where it was read from; for a redelivered message the queue of a retry topic."""
        return unwrap_queue(self.namespace, self.source)

    @property
    def message_id(self) -> str:
        """The id that its producer assigned, the same at every try; else its physical location."""
        return (
            self.properties.get(names.UNIQUE_KEY)
            or self.properties.get(names.ORIGIN_MESSAGE_ID)
            or self.offset_message_id
        )

    @property
    def offset_message_id(self) -> str:
        """Its physical location, as RocketMQ writes it."""
        read = self._read
        return offset_message_id(*unpack_host(read.store_host), read.position)

    @property
    def position(self) -> int:
        """Its position in its broker's commit log."""
        return self._read.position

    @property
    def tries(self) -> int:
        """Which delivery this is: 1 for the first."""
        return self._read.reconsume_times + self.retries_here + 1

    @property
    def born_at(self) -> datetime:
        """When its producer sent it, by the producer's clock."""
        return _time(self._read.born_ms)

    @property
    def stored_at(self) -> datetime:
        """When its broker stored it; a delayed message is stored again when it is due."""
        return _time(self._read.store_ms)

    @property
    def delayed_from(self) -> datetime | None:
        """When a delayed message began to wait; None if it did not, or if that is not known.

        The time is the broker's where the broker records it, else when the producer sent the
        message. It is not known of a redelivered message or a dead letter, whose properties are
        about the last wait, nor of a transaction, whose message waits from its commit on.
        """
        found = self.properties
        if self._read.reconsume_times:
            return None
        if (enqueued_ms := _number(found.get(names.TIMER_ENQUEUE_MS, ""))) is not None:
            return _time(enqueued_ms)
        is_delayed = names.WAITED_AT in found or _number(found.get(names.DELAY_LEVEL, ""))
        return self.born_at if is_delayed and names.PRODUCER_GROUP not in found else None

    # Settling it

    async def ack(self) -> None:
        """It is consumed. A message is settled once; more does nothing."""
        settling = self._settling
        if not self.was_settled:
            self.was_settled = True
            await settling.finish(self)

    async def retry(self, after: timedelta | None = None) -> None:
        """Deliver it again: after the broker's next delay, or at least after this time.

        The time is rounded up to one of the broker's delay levels, which is all that it takes.
        """
        settling = self._settling
        if not self.was_settled:
            await self._give_back(settling.retry(self, after))

    async def dead_letter(self) -> None:
        """Do not deliver it again: it goes to the group's dead letters at once."""
        settling = self._settling
        if not self.was_settled:
            await self._give_back(settling.dead_letter(self))

    async def _give_back(self, settled: Awaitable[None]) -> None:
        self.was_settled = True
        try:
            await settled
        except BaseException:
            self.was_settled = False
            raise
        self.was_retried = True

    @property
    def _settling(self) -> Settlement:
        if self._settlement is None:
            raise SdkError("Only messages of a group's consumer can be acknowledged or retried.")
        return self._settlement

    @property
    def _read(self) -> Entry:
        return envelope.read(self._raw, 0)


def read_one(data: Buffer, broker: str, namespace: str = "") -> Received:
    """The message that a broker asks about; MalformedContent if it cannot be parsed."""
    raw = bytes(data)
    read = _envelope(raw, 0)
    topic = read.topic.decode("utf-8", "surrogateescape")
    return Received(raw, read, Queue(topic, broker, read.queue_id), None, namespace)


def split(
    data: Buffer, queue: Queue | str, settlement: Settlement | None = None, namespace: str = ""
) -> list[Received]:
    """The messages of an answer; MalformedContent if they cannot be parsed.

    `queue` is the one that was pulled, or the name of the broker that has found them anywhere.
    """
    view = memoryview(data)
    found: list[Received] = []
    at, end = 0, len(view)
    while at < end:
        read = _envelope(view, at)
        following = at + read.total_size
        source = queue
        if isinstance(source, str):
            source = Queue(read.topic.decode("utf-8", "surrogateescape"), source, read.queue_id)
        found.append(Received(bytes(view[at:following]), read, source, settlement, namespace))
        at = following
    return found


def _envelope(data: Buffer, at: int) -> Entry:
    try:
        read = envelope.read(data, at)
    except EntryError as wrong:
        raise MalformedContent(f"Message at byte {at} is invalid: {wrong.reason}.") from None
    if read.is_batch:
        raise MalformedContent(f"Message at byte {at} is a batch.")
    return read


def _number(text: str) -> int | None:
    """The number in a property; None if it is no number, or longer than a time in milliseconds."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= MS_DIGITS_MAX
    return int(text) if is_number else None


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
