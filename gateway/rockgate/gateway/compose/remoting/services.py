"""What RocketMQ's processors are made of, and the folds behind it: one of each per server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from shutil import disk_usage

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.remoting.facts import broker_facts, store_facts
from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.groups.ownership import GroupOwnership
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.remoting.admin.broker_settings import BrokerSettings
from rockgate.gateway.remoting.admin.dead_letters import DeadLetterAdmin, KnownGroups
from rockgate.gateway.remoting.admin.delays import DelayAdmin
from rockgate.gateway.remoting.admin.empty_offsets import EmptyOffsetsAdmin
from rockgate.gateway.remoting.admin.halves import HalfAdmin
from rockgate.gateway.remoting.admin.log_checks import LogChecks
from rockgate.gateway.remoting.admin.resent import Resent
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.forbidden import ForbiddenReads
from rockgate.gateway.remoting.groups.locks import Locks
from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets, Resets
from rockgate.gateway.remoting.groups.reset_notices import ResetNotices
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.check_back import CheckBacks
from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.retry import Retries
from rockgate.gateway.remoting.messages.sender import MessageKind, Sender
from rockgate.gateway.remoting.pop.acquirer import Acquirer
from rockgate.gateway.remoting.pop.assignment import RequestModes
from rockgate.gateway.remoting.pop.clock_steps import ClockSteps
from rockgate.gateway.remoting.pop.receipts import Receipts
from rockgate.gateway.remoting.pop.revival import Revival
from rockgate.gateway.remoting.server.admission import HeldSend
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.overload import Overload
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.remoting.statistics.put_latency import PutLatency
from rockgate.gateway.remoting.statistics.request_queues import RequestQueues
from rockgate.gateway.remoting.statistics.runtime import RuntimeFigures
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.loop import LoopWatch
from rockgate.gateway.telemetry.requests import ApiStats, RequestStats
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.gateway.visibility.aborted import AbortedBatches
from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.store.half import HalfMessages
from rockgate.store.inflight.fold import MessagesInFlight
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store

HEADER_ROOM = 64 * 1024
SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the statistics take from outside this listener."""

    produces: ApiStats
    """Produce requests, which are puts too."""
    loop: LoopWatch
    stalls: Stalls


@dataclass(frozen=True, slots=True)
class RemotingFolds:
    """The folds of the RocketMQ listener. Created with the store, which feeds them."""

    settings: GroupSettings
    halves: HalfMessages
    resent: Resent
    in_flight: MessagesInFlight
    modes: RequestModes
    forbidden: ForbiddenReads
    changed: ChangedSettings
    """Changed by Kafka's clients, too, and in the snapshot among their folds."""

    @classmethod
    def make(cls, journal: Journal, topics: Topics, changed: ChangedSettings) -> RemotingFolds:
        """Create empty folds; the store restores them."""
        return cls(
            settings=GroupSettings(journal),
            halves=HalfMessages(),
            resent=Resent(journal),
            in_flight=MessagesInFlight(topics),
            modes=RequestModes(journal),
            forbidden=ForbiddenReads(journal),
            changed=changed,
        )

    def all(self) -> list[Fold]:
        """All folds, in the order of a snapshot."""
        return [
            self.settings.fold,
            self.halves,
            self.resent.fold,
            self.in_flight,
            self.modes.fold,
            self.forbidden.fold,
        ]


class RemotingServices:
    """The parts of the broker; processors are given only those that they use."""

    def __init__(
        self,
        *,
        config: Config,
        store: Store,
        folds: RemotingFolds,
        groups: Groups,
        stable_offsets: StableOffsets,
        empty: EmptyOffsets,
        poll_registry: PollRegistry,
        durability: Durability,
        cold_reads: ColdReads,
        store_host: bytes,
        threads: BatchThreads,
        load: Load,
    ) -> None:
        self.config = remoting = folds.changed.over(config.remoting)
        self.log_checks = LogChecks(config.server.data_dir.absolute(), store.clock)
        self._make_settings(config, folds)
        self.series_max = config.metrics.groups_max
        self.store = store
        self.folds = folds
        self.poll_registry = poll_registry
        self.durability = durability
        self.store_host = store_host
        self.empty_offsets = EmptyOffsetsAdmin(store.queues, empty)
        self.topics = TopicRegistry(
            store.topics,
            config.topics,
            broker_name=remoting.broker_name,
            cluster_name=remoting.cluster_name,
        )
        self._make_groups(GroupOwnership(groups))
        self.transcoder = Transcoder(
            cache_bytes_max=remoting.batch_cache_bytes_max,
            message_bytes_max=remoting.frame_bytes_max - HEADER_ROOM,
            is_aborted=AbortedBatches(store.topics, stable_offsets),
            threads=threads,
        )
        self.puller = Puller(
            reader=store.reader,
            cold_reads=cold_reads,
            stable_offsets=stable_offsets,
            transcoder=self.transcoder,
        )
        self.polls = LongPolls(remoting.waiting_pulls_max, remoting.waiting_bytes_max)
        self.overload = Overload[HeldSend](folds.changed.over(config.overload))
        self.settings.on_overload_changed.append(self.overload.configure)
        self._make_statistics(config, load)
        self.lookup = MessageLookup(store.lookup, self.puller.end, self.transcoder)
        self.locks = Locks(remoting.lock_expiry_ms)
        self._make_senders()
        self.check_backs = CheckBacks(
            halves=self.halves,
            undecided=folds.halves,
            clients=self.clients,
            journal=store.appender,
            clock=store.clock,
            config=remoting,
            store_host=store_host,
        )
        store.retention.keep(folds.halves)
        for part in (self.sender.configure, self.check_backs.configure):
            self.settings.on_changed.append(part)
        self._make_pop()
        self._make_admin(groups, cold_reads)

    def _make_settings(self, config: Config, folds: RemotingFolds) -> None:
        """Make what shows settings to RocketMQ's tools, and changes them."""
        self.settings = BrokerSettings(
            configured=config.remoting,
            overload=config.overload,
            changed=folds.changed,
            facts=broker_facts(config),
        )
        folds.changed.follow(config.store, lambda now: self.settings.show(store_facts(now)))

    def _make_groups(self, ownership: GroupOwnership) -> None:
        """Make what knows the members of groups and their offsets."""
        remoting, call_soon = self.config, asyncio.get_running_loop().call_soon
        self.clients = Clients(ownership, remoting.client_expiry_ms, call_soon)
        resets = Resets(self.poll_registry.wake_changed)
        self.clients.on_emptied.append(resets.forget)
        self.offsets = ConsumerOffsets(self.store.progress, ownership, resets)
        self.reset_notices = ResetNotices(
            self.clients, is_enabled=not remoting.server_side_reset, soon=call_soon
        )

        def configure(config: RemotingConfig) -> None:
            self.reset_notices.is_enabled = not config.server_side_reset

        self.settings.on_changed.append(configure)

    def _make_statistics(self, config: Config, load: Load) -> None:
        """Make what counts, and what reports it."""
        store, remoting, loop = self.store, self.config, asyncio.get_running_loop()
        self.requests = RequestStats()
        self.statistics = BrokerStatistics(
            topics=store.topics,
            queues=store.queues,
            log=store.log,
            puts=store.appender,
            reads=self.puller,
            clock=store.clock,
            delivered=lambda: store.deliveries.delivered_count,
            cluster_name=remoting.cluster_name,
            labels_max=remoting.statistics_labels_max,
        )
        sends = [self.requests.of(code) for code in SENDS]
        self.put_latency = PutLatency([*sends, load.produces], store.clock.monotonic_ms())
        self.statistics.on_second.append(self.put_latency.turn)
        self.figures = RuntimeFigures(
            store=store,
            statistics=self.statistics,
            put_latency=self.put_latency,
            flushing=store.flusher,
            delays=store.delay,
            reads=self.puller,
            sends=sends,
            queues=RequestQueues(
                in_flight=self.overload,
                suspended=self.polls,
                late_seconds=lambda: load.loop.last_seconds,
                now_ms=lambda: int(loop.time() * 1000),
            ),
            stall_ms=load.stalls.current_ms,
            capacity=lambda: disk_usage(config.server.data_dir)[::2],
            started_ms=store.clock.now_ms(),
        )

    def _make_senders(self) -> None:
        """Create the send path: ordinary, half, delayed and retried messages."""
        store, remoting, folds = self.store, self.config, self.folds
        self.sender = Sender(
            appender=store.appender,
            queues=store.queues,
            topics=self.topics,
            durability=self.durability,
            body_bytes_max=remoting.message_bytes_max,
            asks=self.clients.asks,
        )
        self.delays = Delays(
            topics=store.topics,
            queues=store.queues,
            reader=store.reader,
            lookup=store.lookup,
            appender=store.appender,
            schedule=store.delay,
            deliveries=store.deliveries,
            durability=self.durability,
            levels_ms=read_levels(remoting.delay_levels),
            delay_ms_max=remoting.delay_ms_max,
        )
        store.attach(redeliver=self.delays.redeliver)
        self.halves = Halves(
            topics=store.topics,
            queues=store.queues,
            reader=store.reader,
            appender=store.appender,
            halves=folds.halves,
            durability=self.durability,
            place=self.delays.place,
        )
        self.retries = Retries(
            topics=self.topics,
            queues=store.queues,
            settings=folds.settings,
            clock=store.clock,
            append=self.delays.append,
            is_ordered=lambda group: self.locks.is_held(group, store.clock.monotonic_ms()),
            statistics=self.statistics,
        )
        self.sender.on_kind[MessageKind.HALF] = self.halves.prepare
        self.sender.on_kind[MessageKind.DELAYED] = self.delays.take
        self.sender.on_kind[MessageKind.RETRY] = self.retries.take

    def _make_pop(self) -> None:
        """Create pop consumption."""
        store, in_flight = self.store, self.folds.in_flight
        wake = self.poll_registry.wake_changed
        self.pop_clock = ClockSteps(in_flight=in_flight, journal=store.appender, clock=store.clock)
        self.acquirer = Acquirer(
            in_flight=in_flight,
            journal=store.appender,
            puller=self.puller,
            queues=store.queues,
            topics=self.topics,
            offsets=self.offsets,
            clock=self.pop_clock,
            broker_name=self.config.broker_name,
            statistics=self.statistics,
        )
        self.receipts = Receipts(
            in_flight=in_flight,
            journal=store.appender,
            clock=self.pop_clock,
            wake=wake,
            statistics=self.statistics,
        )
        self.revival = Revival(
            in_flight=in_flight,
            journal=store.appender,
            puller=self.puller,
            queues=store.queues,
            lookup=store.topics,
            topics=self.topics,
            progress=store.progress,
            clock=store.clock,
            wake=wake,
        )

    def _make_admin(self, groups: Groups, cold_reads: ColdReads) -> None:
        """Create the admin services."""
        store, folds = self.store, self.folds
        self.half_admin = HalfAdmin(
            topics=store.topics,
            queues=store.queues,
            reader=store.reader,
            lookup=store.lookup,
            clock=store.clock,
            cold_reads=cold_reads,
            undecided=folds.halves,
            halves=self.halves,
            check_backs=self.check_backs,
            clients=self.clients,
        )
        self.delay_admin = DelayAdmin(
            topics=store.topics,
            queues=store.queues,
            reader=store.reader,
            lookup=store.lookup,
            schedule=store.delay,
            deliveries=store.deliveries,
            early=store.early_deliveries,
            cold_reads=cold_reads,
            is_visible=self.puller.is_visible,
            threads=self.transcoder.threads,
        )
        self.dead_letters = DeadLetterAdmin(
            topics=store.topics,
            queues=store.queues,
            reader=store.reader,
            appender=store.appender,
            cold_reads=cold_reads,
            resent=folds.resent,
            transcoder=self.transcoder,
            end=self.puller.end,
            knows=KnownGroups(
                topics=store.topics,
                progress=store.progress,
                clients=self.clients,
                settings=folds.settings,
                groups=groups,
            ),
        )
