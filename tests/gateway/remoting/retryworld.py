"""A world with failing consumers: messages of both protocols, and retry topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.gateway.remoting.world import FakeCaller, RemotingWorld, make_delays, send_header
from tests.world import CONFIG

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.retry import GivenBack, Retries
from rockgate.gateway.remoting.messages.sender import MessageKind, Sender
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.entry import MAGIC_BATCH, pack_host, pack_properties, places
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig
from rockgate.protocol.remoting.message import Message, decode, decode_all
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

BORN_MS = 1_600_000_000_000
BORN_HOST = pack_host(b"\x0a\x00\x00\x07", 4711)
YEAR_MS = 366 * 86_400_000


class RetryWorld(RemotingWorld):
    """All parts of retries except the network."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        clock: ManualClock | None = None,
        config: StoreConfig = CONFIG,
    ) -> None:
        self.ordered: set[str] = set()
        super().__init__(config, disk, clock)

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.settings = GroupSettings(journal)
        return [self.settings.fold]

    def open(self) -> None:
        super().open()
        self.book.make_system_topics()
        self.transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24)
        self.lookup = MessageLookup(
            self.store.lookup, self.store.reader.high_watermark, self.transcoder
        )
        self.delays = make_delays(
            self.store,
            durability=self.durability,
            levels_ms=read_levels(RemotingConfig().delay_levels),
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
            durability=self.durability,
            body_bytes_max=1 << 22,
        )
        self.sender.on_kind[MessageKind.DELAYED] = self.delays.take
        self.sender.on_kind[MessageKind.RETRY] = self.retries.take

    def set_group(self, name: str, **settings: int) -> None:
        """Set the consumption settings of a group."""
        self.settings.set(SubscriptionGroupConfig(group_name=name, **settings))  # type: ignore[arg-type]

    # Producing

    def published(self, body: bytes = b"one", topic: str = "orders", **properties: str) -> Message:
        """Append a message of a RocketMQ producer; return it as its consumers see it."""
        self.message(
            topic, body=body, properties=properties, born_ms=BORN_MS, born_host=BORN_HOST, flag=9
        )
        self.store.flush()
        return self.consumed(topic)[-1]

    def batch(
        self,
        records: Sequence[Record],
        topic: str = "orders",
        compression: Compression = Compression.ZSTD,
    ) -> list[Message]:
        """Append a batch of a Kafka producer; return its records as RocketMQ consumers see them."""
        body = build_batch(records, base_offset=0, compression=compression)
        self.store.appender.batch(self.queue(topic), body, count=len(records), record_ms=BORN_MS)
        return self.consumed(topic)[-len(records) :]

    # Consuming

    def consumed(self, topic: str, queue: int = 0) -> list[Message]:
        """All messages of a queue, as RocketMQ consumers get them."""
        messages: list[Message] = []
        for each in self.entries(topic, queue) if self.store.topics.find(topic) else ():
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
        """Have a consumer fail a message."""
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
        """Send a message as RocketMQ clients do."""
        header = send_header(
            producer_group="CLIENT_INNER_PRODUCER",
            topic=topic,
            born_timestamp=BORN_MS,
            reconsume_times=times,
            max_reconsume_times=times_max,
            properties=pack_properties(properties.items()).decode(),
        )
        taken = self.sender.take(header, body, FakeCaller(0))  # type: ignore[arg-type]
        assert isinstance(taken, Appended)
        return taken
