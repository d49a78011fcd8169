"""Assembles share groups: their members, records and sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.compose.metrics.kafka import ShareSource
from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.groups.consumer.assignment.topics import CatalogTopics
from rockgate.gateway.kafka.groups.share.config import ShareSettings
from rockgate.gateway.kafka.groups.share.coordinator import ShareGroups
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.gateway.kafka.share.sessions import ShareSessions
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.store.store import Store


class SharesAssembly:
    """Share groups of one server. The listener's assembly creates it."""

    def __init__(
        self,
        config: Config,
        store: Store,
        folds: KafkaFolds,
        catalog: TopicCatalog,
        poll_registry: PollRegistry,
    ) -> None:
        configs = folds.configs
        self.settings = ShareSettings(
            config.share_groups, lambda group: configs.of(ResourceType.GROUP, group)
        )
        folds.changed.follow(config.share_groups, self.settings.configure)
        self.records = ShareRecords(
            state=folds.share_state,
            journal=store.appender,
            policy=self.settings.policy,
            monotonic_ms=store.clock.monotonic_ms,
            wake=partial(_wake, store, poll_registry),
        )
        self.groups = ShareGroups(
            memory=folds.shares,
            records=self.records,
            topics=CatalogTopics(catalog),
            timing=self.settings.timing,
        )
        self.sessions = ShareSessions(
            sessions_max=config.share_groups.sessions_max,
            partitions_max=config.share_groups.session_partitions_max,
            release=self.records.release,
            monotonic_ms=store.clock.monotonic_ms,
        )
        self.groups.on_left.append(self.sessions.close)
        self.groups.on_leaving.append(self.sessions.leave)
        self.source = ShareSource(self.records, self.sessions)

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Periodic work: each call does a little, and returns true while there is more."""
        return {"share-locks": self.records.expire, "share-sessions": self.sessions.close_ended}


def _wake(store: Store, poll_registry: PollRegistry, topic_id: bytes, queue_id: int) -> None:
    if store.topics.find_id(topic_id) is not None:
        poll_registry.wake_changed(store.queues.of(topic_id)[queue_id])
