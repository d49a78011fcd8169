"""Ownership of groups: by Kafka or RocketMQ, while a group has members there.

One registry has all groups by their names in the store: Kafka's coordinator. RocketMQ's side
accesses it only through this module.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class GroupType(Enum):
    """The protocol of a group's members; the value is what clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    ROCKETMQ = "rocketmq"


class GroupRegister(Protocol):
    """Every group of the server, whatever its members' protocol."""

    def hold(self, name: str, kind: GroupType) -> bool:
        """Reserve a group for members of one protocol; False while it has others."""

    def release(self, name: str, kind: GroupType) -> None:
        """Release a group: its last member of that protocol has left."""

    def has_others(self, name: str, kind: GroupType) -> bool:
        """Whether a group has members of another protocol."""

    def describe(self, name: str) -> object | None:
        """Describe a group; None if it is unknown."""


class GroupOwnership:
    """The registry as RocketMQ's side sees it."""

    def __init__(self, register: GroupRegister) -> None:
        self._register = register

    def take(self, group: str) -> bool:
        """Reserve a group for RocketMQ; False while it has Kafka members."""
        return self._register.hold(group, GroupType.ROCKETMQ)

    def give_back(self, group: str) -> None:
        """Release a group: its last RocketMQ member has left."""
        self._register.release(group, GroupType.ROCKETMQ)

    def is_foreign(self, group: str) -> bool:
        """Whether a group has Kafka members."""
        return self._register.has_others(group, GroupType.ROCKETMQ)
