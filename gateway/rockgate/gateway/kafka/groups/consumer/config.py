"""Settings of consumer groups, by the names that Kafka's brokers have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rockgate.gateway.kafka.groups.config import INT_MAX, GroupsConfig
from rockgate.gateway.kafka.groups.consumer.machine import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupsConfig:
    """Groups of the consumer protocol (KIP-848): timeouts, limits and migration."""

    session_ms: int = field(default=45_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Session timeout of members; the group config `consumer.session.timeout.ms` overrides it."""
    heartbeat_ms: int = field(default=5_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Heartbeat interval of members; `consumer.heartbeat.interval.ms` overrides it for a group."""
    assignment_ms: int = field(default=1_000, metadata={"minimum": 0, "maximum": 15_000})
    """Minimum interval between assignments; `consumer.assignment.interval.ms` overrides it."""
    regex_refresh_ms: int = field(default=600_000, metadata={"minimum": 10_000, "maximum": INT_MAX})
    """Maximum interval between searches for the topics of regular expressions."""
    partitions_max: int = field(default=100_000, metadata={"minimum": 1, "maximum": 100_000})
    """Maximum number of partitions that a group is assigned; further topics have no reader."""
    migration: Literal["bidirectional", "upgrade", "downgrade", "disabled"] = "bidirectional"
    """Whether groups with members may change to the consumer protocol (upgrade) and back."""

    def __post_init__(self) -> None:
        if self.heartbeat_ms >= self.session_ms:
            raise ValueError("heartbeat_ms is not below session_ms")


class Timings:
    """The settings of each group: its own configs over the server's."""

    def __init__(
        self,
        config: ConsumerGroupsConfig,
        groups: GroupsConfig,
        configs: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._config = config
        self._members_max = groups.members_max
        self._configs = configs

    def configure(self, config: ConsumerGroupsConfig) -> None:
        """Use other settings of the server from now on."""
        self._config = config

    def of(self, group: str) -> Timing:
        """The settings of a group."""
        config, own = self._config, self._configs(group)
        return Timing(
            session_ms=int(own.get("consumer.session.timeout.ms", config.session_ms)),
            heartbeat_ms=int(own.get("consumer.heartbeat.interval.ms", config.heartbeat_ms)),
            assignment_ms=int(own.get("consumer.assignment.interval.ms", config.assignment_ms)),
            members_max=self._members_max,
            partitions_max=config.partitions_max,
            patterns_refresh_ms=config.regex_refresh_ms,
        )
