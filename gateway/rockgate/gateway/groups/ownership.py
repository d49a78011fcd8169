"""Ownership of groups: by Kafka or RocketMQ, while a group has members there.

One register knows all groups by their names in the store. It is Kafka's coordinator; RocketMQ's
side asks it through this module and never by name.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class GroupType(Enum):
    """Who a group's members are; the value is what clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    ROCKETMQ = "rocketmq"


class GroupRegister(Protocol):
    """Every group of the server, of any kind of members."""

    def hold(self, name: str, kind: GroupType) -> bool:
        """Reserve a group for one kind of members; False while it has others."""

    def release(self, name: str, kind: GroupType) -> None:
        """The last member of that kind is gone."""

    def has_others(self, name: str, kind: GroupType) -> bool:
        """Whether a group has members of another kind."""

    def describe(self, name: str) -> object | None:
        """Describe a group; None if it is unknown."""


class GroupOwnership:
    """The register as RocketMQ's side asks it."""

    def __init__(self, register: GroupRegister) -> None:
        self._register = register

    def take(self, group: str) -> bool:
        """Take a group; False while Kafka's side has members in it."""
        return self._register.hold(group, GroupType.ROCKETMQ)

    def give_back(self, group: str) -> None:
        """The last member here is gone."""
        self._register.release(group, GroupType.ROCKETMQ)

    def is_foreign(self, group: str) -> bool:
        """Whether a group has members on Kafka's side."""
        return self._register.has_others(group, GroupType.ROCKETMQ)
