"""The parts of admin handlers over a store in memory, and their responses as clients read them."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, TypeVar

from tests.gateway.kafka.world import KafkaWorld
from tests.world import CONFIG

from rockgate.gateway.kafka.configs.loggers import LoggerLevels
from rockgate.gateway.kafka.configs.resources import (
    Alterable,
    Resources,
    ResourceType,
    TopicResources,
    client_metrics_resources,
    group_resources,
)
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.placement import SingleNode
from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.runtime.identity import Identity
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.store.state.topic import Topic

T = TypeVar("T")
NODE_ID = 7
IDENTITY = Identity(node_id=NODE_ID, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ")
MEMORY_MAX = 1 << 30
SYNC = replace(CONFIG, flush="sync")


class Admin(KafkaWorld):
    """A world whose topics can be administered. Set `topics_config` before making a handler."""

    topics_config = TopicsConfig()
    defaults = TopicDefaults()

    def open(self) -> None:
        super().open()
        self.configs = self.folds.configs
        self.quotas = self.folds.quotas
        self.throttling = Throttling(quotas=self.quotas, config=QuotasConfig(), clock=self.hand)
        topics = self.store.topics
        self.catalog = StoreCatalog(
            topics,
            self.topics_config.partitions_max,
            lists_system_topics=self.topics_config.system_topics_listed,
        )
        self.placement = SingleNode(node_id=NODE_ID, leader_epoch=self.store.epochs.current)
        self.metadata_cache = MetadataCache(self.placement)
        topics.on_deleted.append(self.metadata_cache.forget)
        self.durability = Durability(self.store)

    def alterable(self, **more: Any) -> Alterable:
        resources: dict[ResourceType, Resources] = {
            ResourceType.TOPIC: TopicResources(catalog=self.catalog, defaults=self.defaults),
            ResourceType.GROUP: group_resources(self.configs),
            ResourceType.CLIENT_METRICS: client_metrics_resources(self.configs),
            ResourceType.BROKER_LOGGER: LoggerLevels(),
        }
        given = {
            "catalog": self.catalog,
            "node_id": NODE_ID,
            "broker_configs": {},
            "resources": resources,
        }
        return Alterable(**{**given, **more})

    def names(self) -> list[str]:
        return sorted(topic.name for topic in self.store.topics)

    def get(self, name: str) -> Topic:
        return self.store.topics.get(name)


async def answered(response: T | Awaitable[T]) -> T:
    """The response, awaited if necessary."""
    return await response if isinstance(response, Awaitable) else response


async def seen(response: Any, version: int) -> Any:
    """The response as a client reads it, including encoded parts and missing fields."""
    there = await answered(response)
    return decode(type(there), version, encode(there, version), memory_max=MEMORY_MAX)
