"""The groups in which a client consumes: their heartbeat data, and brokers' requests to them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.sdk.client.connection import Link

CODES: Final = (
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
)
"""The requests that brokers send to a member of a group."""


class GroupTaken(ValueError):
    """The group is consumed in this client already."""


class GroupConsumer(Protocol):
    """One member of one group."""

    def data(self) -> ConsumerData:
        """What it consumes, for heartbeats."""

    def asked(self, link: Link, command: Command) -> None:
        """Handle a broker's request; it may be answered later."""

    def route_changed(self, topic: str) -> None:
        """The queues of a topic have changed; it may be one that is not consumed here."""


class Consumers:
    """The groups of one client, each with its one member here."""

    def __init__(self) -> None:
        self._by_group: dict[str, GroupConsumer] = {}

    @property
    def groups(self) -> Collection[str]:
        """The groups that are consumed in this client."""
        return self._by_group.keys()

    def add(self, group: str, consuming: GroupConsumer) -> None:
        """Include the group in heartbeats from now on, by its name on the wire."""
        if group in self._by_group:
            raise GroupTaken(
                f"The client already has a consumer of group {group}. "
                "Use another group, or another `instance`."
            )
        self._by_group[group] = consuming

    def remove(self, group: str) -> None:
        """The group no longer consumes here."""
        self._by_group.pop(group, None)

    def route_changed(self, topic: str) -> None:
        """Notify every member that the queues of a topic have changed."""
        for consuming in list(self._by_group.values()):
            consuming.route_changed(topic)

    def data(self) -> list[ConsumerData]:
        """The consumers' part of heartbeats."""
        return [self._by_group[group].data() for group in sorted(self._by_group)]

    def asked(self, link: Link, command: Command) -> None:
        """Hand a request to the member that it is for."""
        fields = command.fields
        group = fields.get("consumerGroup") or fields.get("group") or ""
        consuming = self._by_group.get(group)
        if consuming is not None:
            consuming.asked(link, command)
        elif not command.is_oneway:
            remark = f"the client has no consumer of group {group}"
            link.respond(command, Command(ResponseCode.CONSUMER_NOT_ONLINE, remark=remark))
