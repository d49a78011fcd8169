"""Assembles the groups of Kafka's clients, of every protocol."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.consumer.assignment.topics import CatalogTopics
from rockgate.gateway.kafka.groups.consumer.config import Timings
from rockgate.gateway.kafka.groups.consumer.coordinator import ConsumerGroups
from rockgate.gateway.kafka.groups.consumer.migration import MigrationPolicy
from rockgate.gateway.kafka.groups.expiry import Expiry
from rockgate.gateway.kafka.groups.groups import Groups, new_member_id
from rockgate.gateway.kafka.groups.other_kinds import OtherGroups
from rockgate.gateway.kafka.groups.streams.config import StreamsTimings
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.gateway.storage.durability import Durability
from rockgate.store.store import Store
from rockgate.store.upkeep.expiry import TrustedTime


def streams_groups(config: Config, folds: KafkaFolds, catalog: TopicCatalog) -> StreamsGroups:
    """Create the groups of the streams protocol."""
    timings = StreamsTimings(
        config.streams_groups,
        config.groups,
        lambda group: folds.configs.of(ResourceType.GROUP, group),
    )
    folds.changed.follow(config.streams_groups, timings.configure)
    return StreamsGroups(memory=folds.streams, topics=CatalogTopics(catalog), timing=timings.of)


class GroupsAssembly:
    """What groups are built from. The listener's assembly creates one and calls `make` once."""

    def __init__(
        self,
        *,
        config: Config,
        store: Store,
        folds: KafkaFolds,
        catalog: TopicCatalog,
        durability: Durability,
        others: Sequence[OtherGroups] = (),
    ) -> None:
        """The coordinators of further protocols are `others`."""
        self.config = config
        self.store = store
        self.folds = folds
        self.catalog = catalog
        self.durability = durability
        self.others = others

    def _consumers(self) -> ConsumerGroups:
        """Create the groups of the consumer protocol."""
        config, configs = self.config, self.folds.configs
        timings = Timings(
            config.consumer_groups,
            config.groups,
            lambda group: configs.of(ResourceType.GROUP, group),
        )
        self.folds.changed.follow(config.consumer_groups, timings.configure)
        return ConsumerGroups(
            memory=self.folds.consumers,
            topics=CatalogTopics(self.catalog),
            timing=timings.of,
            policy=MigrationPolicy(config.consumer_groups.migration),
            new_id=new_member_id,
        )

    def make(self, resources: AsyncExitStack) -> Groups:
        """Restore the groups, and expire old offsets periodically."""
        config, store, saved = self.config.groups, self.store, self.folds.groups
        groups = Groups(
            config=config,
            saved=saved,
            progress=StoreProgress(store.progress),
            durability=self.durability,
            new_id=new_member_id,
            pending=self.folds.transactions.pending,
            consumers=self._consumers(),
            others=self.others,
        )
        groups.load()
        expiry = Expiry(
            config=config,
            groups=groups,
            saved=saved,
            progress=store.progress,
            topics=store.topics,
            now_ms=TrustedTime(store.clock).now_ms,
            is_pending=self.folds.transactions.pending.has_at,
        )
        expiry.start(asyncio.get_running_loop())
        resources.callback(expiry.stop)
        return groups
