"""The defaults of topic configs: the server's settings where they exist, or else the table's.

A default is a setting of the server where Kafka has a broker setting for it that this server has
too; all others are those of the table of configs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS


class ConfigSource(IntEnum):
    """The source of a config's value, by Kafka's numbers (ConfigSource in DescribeConfigs)."""

    TOPIC = 1
    SERVER = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class TopicDefaults:
    """The texts of all configs for a topic that sets none of them."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` are those given by the server's settings."""
        values = values or {}
        self._values = {
            name: values.get(name, config.default) for name, config in TOPIC_CONFIGS.items()
        }
        self.set_by_server = frozenset(
            name for name, config in TOPIC_CONFIGS.items() if self._values[name] != config.default
        )
        """The configs whose default is not the table's."""

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect for a topic with these configs."""
        return config.get(name, self._values[name])


def source_of(name: str, config: Mapping[str, str], defaults: TopicDefaults) -> ConfigSource:
    """The source of the value in effect for a topic."""
    if name in config:
        return ConfigSource.TOPIC
    return ConfigSource.SERVER if name in defaults.set_by_server else ConfigSource.DEFAULT
