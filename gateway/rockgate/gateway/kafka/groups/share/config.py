"""Settings of share groups, by the names that Kafka's brokers have for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rockgate.gateway.kafka.groups.config import INT_MAX
from rockgate.gateway.kafka.groups.share.machine import ShareTiming

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
READ_COMMITTED: Final = "read_committed"
PARTITIONS_MAX: Final = 5_000
"""Partitions that are assigned in a group; further topics have no reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupsConfig:
    """Share groups (KIP-932): timeouts, locks and limits."""

    session_ms: int = field(default=45_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Session timeout of members; the group config `share.session.timeout.ms` overrides it."""
    heartbeat_ms: int = field(default=5_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Heartbeat interval of members; `share.heartbeat.interval.ms` overrides it for a group."""
    assignment_ms: int = field(default=1_000, metadata={"minimum": 0, "maximum": 15_000})
    """Minimum interval between assignments; `share.assignment.interval.ms` overrides it."""
    members_max: int = field(default=200, metadata={"minimum": 1, "maximum": 1_000})
    """Maximum number of members per group; further ones are rejected."""
    lock_ms: int = field(default=30_000, metadata={"minimum": 1_000, "maximum": 3_600_000})
    """How long a member may hold a record; `share.record.lock.duration.ms` overrides it."""
    deliveries_max: int = field(default=5, metadata={"minimum": 2, "maximum": 10})
    """How often a record is delivered at most; `share.delivery.count.limit` overrides it."""
    locks_max: int = field(default=2_000, metadata={"minimum": 100, "maximum": 10_000})
    """Records in flight per partition; `share.partition.max.record.locks` overrides it."""
    sessions_max: int = field(default=2_000, metadata={"minimum": 1, "maximum": 100_000})
    """Maximum number of share sessions; a further one is rejected with a retriable error."""
    session_partitions_max: int = field(
        default=100_000, metadata={"minimum": 1, "maximum": 10_000_000}
    )
    """Maximum number of partitions of all share sessions together."""

    def __post_init__(self) -> None:
        if self.heartbeat_ms >= self.session_ms:
            raise ValueError("heartbeat_ms is not below session_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePolicy:
    """How one group treats its records."""

    lock_ms: int
    deliveries_max: int
    locks_max: int
    is_committed: bool
    """Whether records of open and aborted transactions are passed over."""
    may_renew: bool
    begins: str
    """Where a new group begins: earliest, latest or by_duration:…"""


class ShareSettings:
    """The settings of each group: its own configs over the server's."""

    def __init__(
        self, config: ShareGroupsConfig, configs: Callable[[str], Mapping[str, str]]
    ) -> None:
        self._config = config
        self._configs = configs

    def configure(self, config: ShareGroupsConfig) -> None:
        """Use other settings of the server from now on."""
        self._config = config

    def timing(self, group: str) -> ShareTiming:
        """The settings of a group's members."""
        config, own = self._config, self._configs(group)
        return ShareTiming(
            session_ms=int(own.get("share.session.timeout.ms", config.session_ms)),
            heartbeat_ms=int(own.get("share.heartbeat.interval.ms", config.heartbeat_ms)),
            assignment_ms=int(own.get("share.assignment.interval.ms", config.assignment_ms)),
            members_max=config.members_max,
            partitions_max=PARTITIONS_MAX,
        )

    def policy(self, group: str) -> SharePolicy:
        """How a group treats its records."""
        config, own = self._config, self._configs(group)
        return SharePolicy(
            lock_ms=int(own.get("share.record.lock.duration.ms", config.lock_ms)),
            deliveries_max=int(own.get("share.delivery.count.limit", config.deliveries_max)),
            locks_max=int(own.get("share.partition.max.record.locks", config.locks_max)),
            is_committed=own.get("share.isolation.level") == READ_COMMITTED,
            may_renew=own.get("share.renew.acknowledge.enable", "true") == "true",
            begins=own.get("share.auto.offset.reset", LATEST),
        )


_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d*))?S)?)?", re.IGNORECASE
)
_SECONDS: Final = (86_400, 3_600, 60, 1)


def duration_ms(begins: str) -> int | None:
    """How long before now a group begins; None if that is not by a time."""
    found = _DURATION.fullmatch(begins)
    if found is None:
        return None
    *whole, part = found.groups()
    seconds = sum(int(n or 0) * unit for n, unit in zip(whole, _SECONDS, strict=True))
    return min(seconds * 1_000 + int(((part or "") + "000")[:3]), 2**53)
