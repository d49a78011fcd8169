"""Whose a group is: held in Kafka's groups while it has members on RocketMQ's side."""

from __future__ import annotations

from rockgate.gateway.kafka.groups.groups import Groups, Kind


class GroupTenancy:
    """Asks Kafka's groups, under the store's names."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def take(self, group: str) -> bool:
        """Take a group; False while Kafka's side has members in it."""
        return self._groups.hold(group, Kind.ROCKETMQ)

    def give_back(self, group: str) -> None:
        """The last member here is gone."""
        self._groups.release(group, Kind.ROCKETMQ)

    def is_foreign(self, group: str) -> bool:
        """Whether a group has members on Kafka's side."""
        return self._groups.has_others(group, Kind.ROCKETMQ)
