"""The defaults of topic configs: the server's settings where they exist, or else the table's.

A default is a setting of the server where Kafka has a broker setting for it that this server has
too; all others are those of the table of configs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS


class ConfigSource(IntEnum):
    """The source of a config's value, by Kafka's numbers (ConfigSource in DescribeConfigs)."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    SERVER = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Dynamic(NamedTuple):
    """A value that was set while the server runs."""

    value: str
    source: ConfigSource


class TopicDefaults:
    """The texts of all configs for a topic that sets none of them."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` are those given by the server's settings."""
        values = values or {}
        self._given = {
            name: values.get(name, config.default) for name, config in TOPIC_CONFIGS.items()
        }
        self._values = self._given
        self._dynamic: Mapping[str, Sequence[Dynamic]] = {}
        self.set_by_server = frozenset(
            name for name, config in TOPIC_CONFIGS.items() if self._given[name] != config.default
        )
        """The configs whose default is not the table's."""
        self.on_changed: list[Callable[[], None]] = []
        """Called after defaults changed."""

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def given(self, name: str) -> str:
        """The value given by the server's settings when it started."""
        return self._given[name]

    def dynamic(self, name: str) -> Sequence[Dynamic]:
        """What was set while the server runs, the nearest first."""
        return self._dynamic.get(name, ())

    def change(self, dynamic: Mapping[str, Sequence[Dynamic]]) -> None:
        """Replace all that was set while the server runs, by config."""
        self._dynamic = dynamic
        changed = {name: found[0].value for name, found in dynamic.items() if found}
        self._values = self._given | changed
        for notify in self.on_changed:
            notify()

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect for a topic with these configs."""
        return config.get(name, self._values[name])


def source_of(name: str, config: Mapping[str, str], defaults: TopicDefaults) -> ConfigSource:
    """The source of the value in effect for a topic."""
    if name in config:
        return ConfigSource.TOPIC
    if dynamic := defaults.dynamic(name):
        return dynamic[0].source
    return ConfigSource.SERVER if name in defaults.set_by_server else ConfigSource.DEFAULT
