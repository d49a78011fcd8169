"""The configs of groups in Kafka 4.3. docs/reference/protocol.md is generated from it.

They belong to the group protocols that came after the classic one. Each is checked within the
bounds that a Kafka broker has by default, stored and described, and takes effect with the next
heartbeat or fetch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.topic import BOOLEAN, number, one_of
from rockgate.gateway.kafka.configs.types import ConfigKind, ConfigType

_SESSION_MS = number(45_000, 60_000)
_HEARTBEAT_MS = number(5_000, 15_000)
_ASSIGNMENT_MS = number(0, 15_000)
_RESET = ConfigType(
    kind=ConfigKind.STRING,
    choices=("earliest", "latest"),
    pattern=r"by_duration:(?i:P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?"
    r"([0-9]+([.,][0-9]*)?S)?)?)",
    shape="by_duration:PnDTnHnMn.nS",
)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """One config of groups."""

    name: str
    type: ConfigType
    default: str
    about: str
    """Its meaning."""
    is_broker_s: bool = True
    """Whether a broker has a default of its own for it."""

    @property
    def broker(self) -> str:
        """The name of the broker config for its default."""
        return f"group.{self.name}" if self.is_broker_s else self.name

    @property
    def documentation(self) -> str:
        """The documentation in DescribeConfigs."""
        return self.about


def _timing(kind: str) -> tuple[GroupConfig, ...]:
    return (
        GroupConfig(
            f"{kind}.assignment.interval.ms",
            _ASSIGNMENT_MS,
            "1000",
            f"Minimum interval between assignments of a {kind} group.",
        ),
        GroupConfig(
            f"{kind}.heartbeat.interval.ms",
            _HEARTBEAT_MS,
            "5000",
            f"Heartbeat interval of the members of a {kind} group.",
        ),
        GroupConfig(
            f"{kind}.session.timeout.ms",
            _SESSION_MS,
            "45000",
            f"Session timeout of the members of a {kind} group.",
        ),
    )


_CONFIGS = (
    *_timing("consumer"),
    *_timing("share"),
    *_timing("streams"),
    GroupConfig(
        "share.auto.offset.reset",
        _RESET,
        "latest",
        "Where a share group without a start offset begins to consume.",
        is_broker_s=False,
    ),
    GroupConfig(
        "share.delivery.count.limit",
        number(2, 10),
        "5",
        "Maximum number of delivery attempts of a record in a share group.",
    ),
    GroupConfig(
        "share.isolation.level",
        one_of("read_committed", "read_uncommitted"),
        "read_uncommitted",
        "Isolation level of a share group: whether records of uncommitted "
        "transactions are delivered.",
        is_broker_s=False,
    ),
    GroupConfig(
        "share.partition.max.record.locks",
        number(100, 4_000),
        "2000",
        "Maximum number of in-flight records per partition of a share group.",
    ),
    GroupConfig(
        "share.record.lock.duration.ms",
        number(15_000, 60_000),
        "30000",
        "How long a member of a share group may hold a record before it is redelivered.",
    ),
    GroupConfig(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        "true",
        "Whether members of a share group may renew the lock on a record.",
        is_broker_s=False,
    ),
    GroupConfig(
        "streams.initial.rebalance.delay.ms",
        number(0),
        "3000",
        "How long a new streams group waits for more members before its first assignment.",
    ),
    GroupConfig(
        "streams.num.standby.replicas",
        number(0, 2),
        "0",
        "Number of standby replicas of each task of a streams group.",
    ),
)

GROUP_CONFIGS: Mapping[str, GroupConfig] = {
    config.name: config for config in sorted(_CONFIGS, key=lambda config: config.name)
}
