"""Settings of streams groups, by the names that Kafka's brokers have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rockgate.gateway.kafka.groups.config import INT_MAX, GroupsConfig
from rockgate.gateway.kafka.groups.streams.machine import StreamsTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupsConfig:
    """Groups of the streams protocol (KIP-1071): timeouts and limits."""

    session_ms: int = field(default=45_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Session timeout of members; the group config `streams.session.timeout.ms` overrides it."""
    heartbeat_ms: int = field(default=5_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Heartbeat interval of members; `streams.heartbeat.interval.ms` overrides it for a group."""
    assignment_ms: int = field(default=1_000, metadata={"minimum": 0, "maximum": 15_000})
    """Minimum interval between assignments; `streams.assignment.interval.ms` overrides it."""
    initial_delay_ms: int = field(default=3_000, metadata={"minimum": 0, "maximum": INT_MAX})
    """Wait for members of an empty group; `streams.initial.rebalance.delay.ms` overrides it."""
    standbys: int = field(default=0, metadata={"minimum": 0, "maximum": 2})
    """Number of standby replicas of a task; `streams.num.standby.replicas` overrides it."""
    tasks_max: int = field(default=50_000, metadata={"minimum": 1, "maximum": 50_000})
    """Maximum number of tasks of a group; a topology with more is not assigned."""

    def __post_init__(self) -> None:
        if self.heartbeat_ms >= self.session_ms:
            raise ValueError("heartbeat_ms is not below session_ms")


class StreamsTimings:
    """The settings of each group: its own configs over the server's."""

    def __init__(
        self,
        config: StreamsGroupsConfig,
        groups: GroupsConfig,
        configs: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._config = config
        self._members_max = groups.members_max
        self._configs = configs

    def configure(self, config: StreamsGroupsConfig) -> None:
        """Use other settings of the server from now on."""
        self._config = config

    def of(self, group: str) -> StreamsTiming:
        """The settings of a group."""
        config, own = self._config, self._configs(group)
        return StreamsTiming(
            session_ms=int(own.get("streams.session.timeout.ms", config.session_ms)),
            heartbeat_ms=int(own.get("streams.heartbeat.interval.ms", config.heartbeat_ms)),
            assignment_ms=int(own.get("streams.assignment.interval.ms", config.assignment_ms)),
            initial_delay_ms=int(
                own.get("streams.initial.rebalance.delay.ms", config.initial_delay_ms)
            ),
            standbys=int(own.get("streams.num.standby.replicas", config.standbys)),
            members_max=self._members_max,
            tasks_max=config.tasks_max,
        )
