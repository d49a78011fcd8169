"""Where configs come from: their resource itself, the server's settings, or the default.

The numbers are Kafka's (ConfigSource in DescribeConfigs).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults


class ConfigSource(IntEnum):
    """Who says what a config is."""

    TOPIC = 1
    SERVER = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


def source_of(name: str, config: Mapping[str, str], defaults: TopicDefaults) -> ConfigSource:
    """Who says what this config is for a topic."""
    if name in config:
        return ConfigSource.TOPIC
    return ConfigSource.SERVER if name in defaults.set_by_server else ConfigSource.DEFAULT
