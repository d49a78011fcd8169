"""What a gateway keeps in memory only, because RocketMQ has no place for it.

Groups with members are this gateway's own; when it ends they join the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.classic.memory import Record
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import Refusal, Refusals
from rockgate.protocol.kafka.errors import ErrorCode

A = TypeVar("A")


class RememberedGroups:
    """Groups as last saved."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def names(self) -> Iterable[str]:
        """All names."""
        return self._records

    def find(self, name: str) -> Record | None:
        """The state of a group, or None."""
        return self._records.get(name)

    def save(self, name: str, group: SavedGroup) -> None:
        """Save a group; one without members is not worth remembering."""
        if group.members:
            self._records[name] = Record(0, group)
        else:
            self._records.pop(name, None)

    def remove(self, names: Iterable[str]) -> None:
        """Delete groups."""
        for name in names:
            self._records.pop(name, None)


class NoTransactions:
    """Offsets of open transactions: there are none."""

    def has(self, group: str) -> bool:
        """Whether a group has any."""
        return False

    def groups(self) -> Iterable[str]:
        """The groups that have any."""
        return ()

    def has_at(self, group: str, topic_id: bytes, partition: int, /) -> bool:
        """Whether a group has one in a partition."""
        return False


class NoConfigs:
    """Configs of groups: they have none here."""

    def of(self, type_: int, name: str) -> Mapping[str, str]:
        """None are set."""
        return {}

    def names(self, type_: int) -> Iterator[str]:
        """Nothing has any."""
        return iter(())

    def put(self, type_: int, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Refuse all."""
        reason = "A gateway to a RocketMQ cluster stores no configs."
        return dict.fromkeys(configs, Refusal(ErrorCode.INVALID_CONFIG, reason))


class AtBrokers:
    """Durability of changes: brokers have answered for it before this is asked."""

    def after_changes(self, answer: A, /) -> A:
        """The response, at once."""
        return answer


class NoQuota:
    """Clients may create and delete any number of partitions."""

    def take_partitions(self, call: Call, count: int, *, is_strict: bool) -> None:
        """Count nothing."""
