"""A store in memory whose consumers fail: both sides' messages, retry topics, a clock by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.gateway.remoting.halfworld import FakeCaller
from tests.store.reading import entries

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.retry import GivenBack, Retries
from rockgate.gateway.remoting.messages.sending import MessageKind, Sender
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.topics.topic_registry import TopicBook
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.entry import MAGIC_BATCH, pack_host, pack_properties, places
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig
from rockgate.protocol.remoting.headers.sending import SendHeaderV2
from rockgate.protocol.remoting.message import Message, decode, decode_all
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

CONFIG = StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 16, key_index=False)
SECOND = 1_000
BORN_MS = 1_600_000_000_000
BORN_HOST = pack_host(b"\x0a\x00\x00\x07", 4711)
YEAR_MS = 366 * 86_400_000


class RetryWorld:
    """Everything of retries but the wire."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        clock: ManualClock | None = None,
        config: StoreConfig = CONFIG,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = clock or ManualClock()
        self.config = config
        self.ordered: set[str] = set()
        self.open()

    def open(self) -> None:
        def folds(journal: Journal, topics: Topics) -> Sequence[Fold]:
            self.settings = GroupSettings(journal)
            return [self.settings.fold]

        remoting = RemotingConfig()
        self.store = Store(self.disk.root(), self.config, self.clock, folds=folds)
        self.book = TopicBook(
            self.store.topics, TopicsConfig(), broker_name="here", cluster_name="us"
        )
        self.book.make_system_topics()
        self.book.ensure("orders", 1, 6)
        self.transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24)
        self.lookup = MessageLookup(
            self.store.lookup, self.store.reader.high_watermark, self.transcoder
        )
        durability = Durability(self.store)
        self.delays = Delays(
            store=self.store,
            durability=durability,
            levels_ms=read_levels(remoting.delay_levels),
            delay_ms_max=YEAR_MS,
        )
        self.retries = Retries(
            topics=self.book,
            queues=self.store.queues,
            settings=self.settings,
            clock=self.clock,
            append=self.delays.append,
            is_ordered=self.ordered.__contains__,
        )
        self.sender = Sender(
            appender=self.store.appender,
            queues=self.store.queues,
            topics=self.book,
            durability=durability,
            body_bytes_max=1 << 22,
        )
        self.sender.on_kind[MessageKind.DELAYED] = self.delays.take
        self.sender.on_kind[MessageKind.RETRY] = self.retries.take

    def kill(self) -> None:
        """Die, and start again with what the page cache has."""
        self.disk = self.disk.killed()
        self.open()

    def set_group(self, name: str, **settings: int) -> None:
        """Set how a group may consume."""
        self.settings.set(SubscriptionGroupConfig(group_name=name, **settings))  # type: ignore[arg-type]

    # Producing

    def message(self, body: bytes = b"one", topic: str = "orders", **properties: str) -> Message:
        """Append a message of a RocketMQ producer; as its consumers see it."""
        queue = self.store.queue(self.store.topics.get(topic), 0)
        packed = pack_properties(properties.items())
        draft = Draft(b"", 0, 0, body, packed, 0, BORN_MS, BORN_HOST, 9)
        self.store.appender.message(queue, draft)
        self.store.flush()
        return self.consumed(topic)[-1]

    def batch(
        self,
        records: Sequence[Record],
        topic: str = "orders",
        compression: Compression = Compression.ZSTD,
    ) -> list[Message]:
        """Append a batch of a Kafka producer; its records as RocketMQ's consumers see them."""
        queue = self.store.queue(self.store.topics.get(topic), 0)
        body = build_batch(records, base_offset=0, compression=compression)
        self.store.appender.batch(queue, body, count=len(records), record_ms=BORN_MS)
        return self.consumed(topic)[-len(records) :]

    # Consuming

    def consumed(self, topic: str, queue: int = 0) -> list[Message]:
        """All that lies in a queue, as RocketMQ's consumers are given it."""
        found = self.store.topics.find(topic)
        if found is None:
            return []
        messages: list[Message] = []
        for each in entries(self.store, self.store.queue(found, queue), 0, 1 << 26):
            if places(each.entry, 0)[1] != MAGIC_BATCH:
                messages.append(decode(each.entry))
                continue
            offset, end = each.unit.base, each.unit.base + each.unit.offset_count
            while offset < end:
                cut = self.transcoder.select(each, offset, count_max=1000, size_max=1 << 26)
                assert cut is not None
                messages += decode_all(b"".join(cut.buffers))
                offset = cut.next_offset
        return messages

    def give_back(
        self, message: Message, *, group: str = "g", level: int = 0, times_max: int | None = None
    ) -> Appended:
        """Let a consumer fail a message."""
        found = self.lookup.message(message.position)
        assert found is not None
        taken = self.retries.give_back(found, GivenBack(group, level, times_max))
        assert isinstance(taken, Appended)
        return taken

    def send(
        self,
        topic: str,
        properties: Mapping[str, str],
        body: bytes = b"mine",
        *,
        times: int | None = None,
        times_max: int | None = None,
    ) -> Appended:
        """Send a message as RocketMQ's clients do."""
        header = SendHeaderV2(
            producer_group="CLIENT_INNER_PRODUCER",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=BORN_MS,
            flag=9,
            reconsume_times=times,
            max_reconsume_times=times_max,
            properties=pack_properties(properties.items()).decode(),
        )
        taken = self.sender.take(header, body, FakeCaller(0))  # type: ignore[arg-type]
        assert isinstance(taken, Appended)
        return taken

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and what is due be delivered."""
        self.clock.advance(milliseconds)
        while self.store.tick():
            pass
