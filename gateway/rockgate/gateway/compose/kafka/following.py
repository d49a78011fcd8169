"""What follows settings that are changed while the server runs, besides groups."""

from __future__ import annotations

from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.kafka.configs.dynamic import dynamic
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.produce.producer_expiry import ProducerExpiry
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.net.connection_counts import ConnectionCounts
from rockgate.gateway.security.config import SecurityConfig
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.store.config import StoreConfig
from rockgate.store.store import Store


def follow_defaults(changed: ChangedSettings, defaults: TopicDefaults) -> None:
    """Let changed settings be the defaults of topics."""
    settings = {
        name: alias.setting
        for name, config in TOPIC_CONFIGS.items()
        if (alias := KAFKA_NAMES.get(config.broker or "")) is not None
    }

    def apply(_: object = None) -> None:
        found = {name: dynamic(changed, setting) for name, setting in settings.items()}
        defaults.change({name: levels for name, levels in found.items() if levels})

    changed.on_changed.append(apply)
    apply()


def follow_store(changed: ChangedSettings, config: StoreConfig, store: Store) -> None:
    """Let upkeep use changed settings."""
    changed.follow(config, store.retention.expiry.configure)
    changed.follow(config, store.cleaner.configure)


def follow_expiry(changed: ChangedSettings, config: KafkaConfig, expiry: ProducerExpiry) -> None:
    """Let producers expire by changed settings."""
    changed.follow(config, lambda now: expiry.configure(now.producer_expiry_ms))


def follow_counts(
    changed: ChangedSettings, config: SecurityConfig, counts: ConnectionCounts | None
) -> None:
    """Let connections of an address be limited by changed settings."""
    if counts is not None:
        changed.follow(
            config, lambda now: counts.allow_per_address(now.connections_per_address_max)
        )
