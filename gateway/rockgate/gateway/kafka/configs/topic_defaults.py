"""What a topic has where its own config says nothing: the server's settings, and else the defaults.

A default of topics is a setting of the server where Kafka has a broker setting for it that this
server has too; all others are as the table of configs has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS


class ConfigSource(IntEnum):
    """Who says what a config is, by Kafka's numbers (ConfigSource in DescribeConfigs)."""

    TOPIC = 1
    SERVER = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class TopicDefaults:
    """The texts of all configs for a topic that sets none of them."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` are those that the server's settings give."""
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
        """What holds for a topic of this config."""
        return config.get(name, self._values[name])


def source_of(name: str, config: Mapping[str, str], defaults: TopicDefaults) -> ConfigSource:
    """Who says what this config is for a topic."""
    if name in config:
        return ConfigSource.TOPIC
    return ConfigSource.SERVER if name in defaults.set_by_server else ConfigSource.DEFAULT
