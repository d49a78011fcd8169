"""What consumer groups need of the rest of the server: topics, and groups of other protocols."""

from __future__ import annotations

from typing import Protocol

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.consumer.machine import SubscribedTopics
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.net.clock import Clock


class ClassicSide(Protocol):
    """The groups of other protocols, and those without members."""

    @property
    def clock(self) -> Clock:
        """The clock of timeouts."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether another group may have members."""
        ...

    def holder(self, name: str) -> GroupType | None:
        """Who has a group to itself, with members or, of a modern protocol, without."""
        ...

    def describe(self, name: str) -> GroupView | None:
        """A group of any protocol, with or without members; None if there is no such group."""
        ...

    def classic(self, name: str) -> ClassicGroup | None:
        """The machine of a classic group."""
        ...

    def last_generation(self, name: str) -> int:
        """The generation that a group without members had."""
        ...

    def save(self, name: str, saved: SavedGroup) -> None:
        """Save a group that is classic from now on, or has no members."""
        ...

    def hand_over(self, name: str) -> None:
        """Drop the machine of a classic group, and tell those who wait to join again."""
        ...

    def adopt(self, name: str, saved: SavedGroup, *, is_changed: bool) -> None:
        """Take over a group as a classic one, which rebalances if it has changed."""
        ...


class NameLookup(Protocol):
    """The names of topics."""

    def name_of(self, topic_id: TopicId, /) -> str | None:
        """The name of a topic, by id."""
        ...


class GroupTopics(SubscribedTopics, NameLookup, Protocol):
    """The topics that there are, for groups."""
