"""Producers that write numbered values while everything around them fails, and what they know."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from rockgate.sdk import Message as SdkMessage
from rockgate.sdk import Producer as SdkProducer
from rockgate.sdk.errors import SdkError

KEY_COUNT = 24
PAUSE_S = 0.01
TIMEOUT_MS = 180_000
FLUSH_S = 0.5
QUIET, DEBUG = 0, 7
STATISTICS_MS = 2_000
LINES_MAX = 20_000
"""What librdkafka last said, of all partitions: half a minute of it."""

Place = tuple[int, int]


@dataclass
class Acknowledged:
    """The answers to one producer."""

    places: dict[bytes, Place] = field(default_factory=dict)
    somewhere: dict[bytes, int] = field(default_factory=dict)
    """The partitions of values that were confirmed without an offset: librdkafka takes the
    confirmation of a later batch for those before it whose answers were lost."""
    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When each partition confirmed something."""
    failed: list[str] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    """When each value was given to the client."""
    ended_at: dict[bytes, float] = field(default_factory=dict)
    """When a value was confirmed, or given up."""
    sent_count: int = 0
    fatal: str = ""
    """Why it cannot continue, if so."""


class Writer(Protocol):
    """What a producer knows at the end."""

    number: int
    known: Acknowledged


class LastLines(logging.Handler):
    """The last lines of one producer."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LINES_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{time.strftime('%H:%M:%S', time.gmtime(record.created))} {record.msg}")


class KafkaWriter(threading.Thread):
    """An idempotent producer: values `p<number>-<n>` with one of 24 keys."""

    def __init__(self, bootstrap: str, topic: str, number: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.known = Acknowledged()
        self.is_over = threading.Event()
        self._is_abandoned = threading.Event()
        self._topic = topic
        self._statistics = "{}"
        self._lines = LastLines()
        logger = logging.Logger(f"writer-{number}", logging.DEBUG)
        logger.addHandler(self._lines)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": TIMEOUT_MS,
                "log_level": DEBUG,
                "debug": "eos,msg,topic",
                "logger": logger,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._counted,
                "error_cb": self._failed,
            }
        )

    def run(self) -> None:
        while not self.is_over.is_set() and not self.known.fatal:
            n = self.known.sent_count
            value, key = b"p%d-%d" % (self.number, n), b"k%d" % (n % KEY_COUNT)
            self.known.sent_at.append(time.monotonic())
            try:
                self._producer.produce(self._topic, value, key=key, on_delivery=self._delivered)
            except (KafkaException, BufferError) as error:
                self.known.fatal = self.known.fatal or str(error)
                break
            self.known.sent_count += 1
            self._producer.poll(PAUSE_S)
        until = time.monotonic() + TIMEOUT_MS / 1000
        while self._producer.flush(FLUSH_S) and time.monotonic() < until:
            if self._is_abandoned.is_set() or self.known.fatal:
                self._producer.purge()

    def state_of(self, partition: int) -> str:
        """What librdkafka knows of a partition, and what it last said of it."""
        topics = json.loads(self._statistics).get("topics", {})
        known = topics.get(self._topic, {}).get("partitions", {}).get(str(partition))
        mark = f"{self._topic} [{partition}]"
        lines = [each for each in list(self._lines.lines) if mark in each]
        return "\n".join([json.dumps(known), *lines[-60:]])

    def abandon(self) -> None:
        """Have it end soon, whatever is not confirmed."""
        self._is_abandoned.set()
        self.is_over.set()

    def _counted(self, statistics: str) -> None:
        self._statistics = statistics

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self.known.fatal = error.str()

    def _delivered(self, error: object, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if value is not None:
            self.known.ended_at[bytes(value)] = time.monotonic()
        if error is not None:
            self.known.failed.append(str(error))
            return
        assert value is not None
        assert partition is not None
        if offset is None or offset < 0:
            self.known.somewhere[bytes(value)] = partition
        else:
            self.known.places[bytes(value)] = (partition, offset)
        self.known.times[partition].append(time.monotonic())


class SdkWriter(threading.Thread):
    """RocketMQ's side: single messages to the same queues, `s-<n>`; sent again when unsure."""

    def __init__(self, name_server: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.acknowledged: list[bytes] = []
        self._name_server = name_server
        self._topic = topic

    def run(self) -> None:
        asyncio.run(self._write())

    def abandon(self) -> None:
        """Have it end soon."""
        self.is_over.set()

    async def _write(self) -> None:
        async with SdkProducer(self._name_server, group="chaos") as producer:
            n = 0
            while not await asyncio.to_thread(self.is_over.wait, PAUSE_S):
                body = b"s-%d" % n
                n += 1
                try:
                    await producer.send(SdkMessage(self._topic, body))
                except SdkError:
                    continue
                self.acknowledged.append(body)


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[Place, tuple[bytes, bytes]]:
    """Every record of a topic: key and value by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos-reader",
            "enable.auto.commit": False,
            "log_level": QUIET,
        }
    )
    ends = {}
    for at in range(partitions):
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, at), timeout=60)
        assert start == 0
        ends[at] = end
    consumer.assign([TopicPartition(topic, at, 0) for at in ends])
    found: dict[Place, tuple[bytes, bytes]] = {}
    until = time.monotonic() + 300
    while len(found) < sum(ends.values()):
        assert time.monotonic() < until, (len(found), ends)
        for message in consumer.consume(1000, 1.0):
            assert not message.error(), message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            found[partition, offset] = (bytes(message.key() or b""), bytes(value))
    consumer.close()
    return found


@dataclass(frozen=True)
class Window:
    """A fault in which two gateways may serve one partition, as the design's page says."""

    fault: str
    begin: float
    end: float


WINDOW_S = 10.0
"""A window lasts this much longer than its fault: until the view of a gateway is void, and more."""


@dataclass(frozen=True)
class Verdict:
    """What became of everything that was acknowledged."""

    acknowledged: int
    lost: list[bytes]
    overtaken: list[tuple[bytes, bytes]]
    twice: list[bytes]
    """What is stored more than once although no window was open while it was under way."""
    in_windows: Counter[str]
    """How much is stored more than once in a window, by the fault that opened it."""
    twice_sdk: int
    moved: list[bytes]
    """Keys that are in more than one partition."""


def judge(
    found: dict[Place, tuple[bytes, bytes]],
    writers: Sequence[Writer],
    sdk: Sequence[bytes],
    windows: Sequence[Window] = (),
) -> Verdict:
    """Compare what is there with the answers to producers."""
    places: dict[bytes, list[Place]] = defaultdict(list)
    partitions: dict[bytes, set[int]] = defaultdict(set)
    for place in sorted(found):
        key, value = found[place]
        places[value].append(place)
        if value.startswith(b"p"):
            partitions[key].add(place[0])
    lost = [
        value
        for each in writers
        for value, place in each.known.places.items()
        if place not in places[value]
    ]
    lost += [
        value
        for each in writers
        for value, partition in each.known.somewhere.items()
        if all(partition != place[0] for place in places[value])
    ]
    lost += [body for body in sdk if not places[body]]
    overtaken = []
    for each in writers:
        last: dict[int, tuple[int, bytes]] = {}
        prefix = b"p%d-" % each.number
        # In the order of sending: the first copy of each value is behind that of the one before.
        mine = sorted(
            (int(value.removeprefix(prefix)), min(places[value]), value)
            for value in places
            if value.startswith(prefix) and places[value]
        )
        for _, (partition, offset), value in mine:
            before = last.get(partition)
            if before is not None and offset < before[0]:
                overtaken.append((before[1], value))
            last[partition] = (offset, value)
    many = [value for value, some in places.items() if len(some) > 1]
    known = {each.number: each.known for each in writers}
    twice, in_windows = [], Counter[str]()
    for value in many:
        if value.startswith(b"p"):
            window = _window_of(value, known, windows)
            if window is None:
                twice.append(value)
            else:
                in_windows[window.fault] += 1
    return Verdict(
        acknowledged=sum(len(each.known.places) + len(each.known.somewhere) for each in writers)
        + len(sdk),
        lost=lost,
        overtaken=overtaken,
        twice=twice,
        in_windows=in_windows,
        twice_sdk=sum(value.startswith(b"s") for value in many),
        moved=[key for key, some in partitions.items() if len(some) > 1],
    )


def _window_of(
    value: bytes, known: Mapping[int, Acknowledged], windows: Sequence[Window]
) -> Window | None:
    """The first window that was open while a value was under way."""
    number, _, n = value.removeprefix(b"p").partition(b"-")
    mine = known[int(number)]
    begin = mine.sent_at[int(n)]
    end = mine.ended_at.get(value, float("inf"))
    return next(
        (each for each in windows if each.begin <= end and begin <= each.end + WINDOW_S), None
    )
