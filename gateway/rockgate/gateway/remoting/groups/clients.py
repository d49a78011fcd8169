"""Connected producers and consumers by group, from their heartbeats.

A client is identified by its client id and its connection; it is removed when it unregisters, when
its connection is lost, or when it has been silent for too long. Members of a consumer group are
notified (40) when the group changes, so that they rebalance.

A group that has members here is held in Kafka's groups, so that no Kafka consumer joins it
meanwhile; and while it has Kafka members, no RocketMQ client can join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from rockgate.gateway.remoting.groups.notifications import Notices, Soon, at_once
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import CLIENT_ID_CHARS_MAX
from rockgate.protocol.remoting.bodies.clients import ConsumerData, SubscriptionData
from rockgate.protocol.remoting.codes import ResponseCode

BROADCASTING = "BROADCASTING"
MEMBERSHIPS_MAX = 200_000
BEATS_BYTES_MAX = 64 << 20
"""Maximum size of all retained heartbeats: a hundred thousand of the usual size."""


class Ownership(Protocol):
    """Which protocol may have members in a group: RocketMQ or Kafka."""

    def take(self, group: str) -> bool:
        """Reserve a group; False while it has Kafka members."""

    def give_back(self, group: str) -> None:
        """Release a group: its last member has left."""


@dataclass(slots=True)
class Client:
    """One client on one connection."""

    client_id: str
    caller: Caller
    language: str
    version: int
    seen_ms: int


@dataclass(slots=True)
class ClientGroup:
    """A consumer group with members."""

    name: str
    data: ConsumerData
    members: dict[Caller, Client] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    @property
    def client_ids(self) -> list[str]:
        """The distinct ids of the members."""
        return list(dict.fromkeys(member.client_id for member in self.members.values()))


class Clients:
    """All clients. Time is a parameter; heartbeats and lost sessions change it."""

    def __init__(self, ownership: Ownership, expiry_ms: int, soon: Soon = at_once) -> None:
        self._ownership = ownership
        self._expiry_ms = expiry_ms
        self._consumers: dict[str, ClientGroup] = {}
        self._producers: dict[str, dict[Caller, Client]] = {}
        self._producing: dict[str, dict[Caller, int]] = {}
        """By client id: its connections, and in how many groups each produces."""
        self._groups_of: dict[Caller, dict[str, None]] = {}
        self.on_emptied: list[Callable[[str], None]] = []
        """Called with a group whose last consumer has left."""
        self._askers: dict[str, Caller] = {}
        self._asker_ids: dict[Caller, str] = {}
        self.notices = Notices(self._callers, soon)
        self._membership_count = 0
        """Memberships: a client in a thousand groups counts a thousand times."""
        self._beats: dict[Caller, int] = {}
        self._heartbeat_bytes = 0
        """Bytes of every connection's last heartbeat, whose content is retained."""

    # Reading

    def consumer_group(self, name: str) -> ClientGroup | None:
        """A group that has members."""
        return self._consumers.get(name)

    def consumer_groups(self) -> Iterator[ClientGroup]:
        """All groups that have members."""
        return iter(list(self._consumers.values()))

    @property
    def group_count(self) -> int:
        """How many groups have members."""
        return len(self._consumers)

    def producers(self, group: str) -> list[Client]:
        """The members of a group of producers."""
        return list(self._producers.get(group, {}).values())

    def producer_groups(self) -> list[str]:
        """All groups of producers."""
        return list(self._producers)

    def find_producer(self, client_id: str) -> Caller | None:
        """A connection of a producer, by client id.

        One without a heartbeat so far is found by the connection of its request.
        """
        for caller in self._producing.get(client_id, ()):
            if caller.is_open:
                return caller
        return self._askers.get(client_id)

    # Requests between clients

    def asks(self, client_id: str, caller: Caller) -> None:
        """A client sent a request that another will reply to, perhaps before its heartbeat."""
        if self._asker_ids.get(caller) == client_id or len(client_id) > CLIENT_ID_CHARS_MAX:
            return
        self._forget_asker(caller)
        if client_id not in self._askers:
            self._askers[client_id] = caller
            self._asker_ids[caller] = client_id

    def _forget_asker(self, caller: Caller) -> None:
        client_id = self._asker_ids.pop(caller, None)
        if client_id is not None:
            del self._askers[client_id]

    # Heartbeats

    def reserve(self, caller: Caller, beat_bytes: int, group_count: int, groups_max: int) -> None:
        """Check that a heartbeat's content may be retained; SYSTEM_BUSY if it is too much."""
        held_bytes = self._heartbeat_bytes - self._beats.get(caller, 0) + beat_bytes
        if held_bytes > BEATS_BYTES_MAX:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"Heartbeats of all clients exceed {BEATS_BYTES_MAX:,} bytes.",
            )
        known = len(self._groups_of.get(caller, ()))
        if self._membership_count + max(0, group_count - known) > MEMBERSHIPS_MAX:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"The maximum of {MEMBERSHIPS_MAX:,} clients in groups has been reached.",
            )
        if known > groups_max:
            raise Refused(
                ResponseCode.INVALID_PARAMETER, f"A client may be in at most {groups_max:,} groups."
            )
        self._heartbeat_bytes = held_bytes
        self._beats[caller] = beat_bytes

    def produce(self, group: str, client: Client) -> None:
        """Register a producer in a group."""
        known = self._producers.setdefault(group, {}).get(client.caller)
        if known is None:
            self._producers[group][client.caller] = client
            self._membership_count += 1
            self._groups_of.setdefault(client.caller, {})[group] = None
            callers = self._producing.setdefault(client.client_id, {})
            callers[client.caller] = callers.get(client.caller, 0) + 1
        else:
            known.seen_ms = client.seen_ms

    def consume(self, data: ConsumerData, client: Client, *, notifies: bool) -> bool | None:
        """Register a consumer in a group;

        returns whether that changed the group, None if it may not.
        """
        group = self._consumers.get(data.group_name)
        if group is None:
            if not self._ownership.take(data.group_name):
                return None
            group = self._consumers[data.group_name] = ClientGroup(data.group_name, data)
        group.data = data
        known = group.members.get(client.caller)
        has_changed = known is None or known.client_id != client.client_id
        if known is None:
            group.members[client.caller] = client
            self._membership_count += 1
            self._groups_of.setdefault(client.caller, {})[data.group_name] = None
        else:
            known.client_id = client.client_id
            known.seen_ms = client.seen_ms
        if self._subscribe(group, data):
            has_changed = True
        if has_changed and notifies and data.message_model != BROADCASTING:
            self.notices.add(group.name)
        return has_changed

    def _subscribe(self, group: ClientGroup, data: ConsumerData) -> bool:
        """Update the subscriptions; returns whether topics were added or removed."""
        has_changed = False
        wanted = {each.topic: each for each in data.subscription_data_set}
        for topic, subscription in wanted.items():
            known = group.subscriptions.get(topic)
            if known is None:
                has_changed = True
            if known is None or subscription.sub_version >= known.sub_version:
                group.subscriptions[topic] = subscription
        for topic in group.subscriptions.keys() - wanted.keys():
            del group.subscriptions[topic]
            has_changed = True
        return has_changed

    def touch(self, caller: Caller, now_ms: int) -> bool:
        """Extend a client whose heartbeat is unchanged; False if it is unknown."""
        names = self._groups_of.get(caller)
        if not names:
            return False
        for name in names:
            for members in (
                self._producers.get(name, {}),
                self._consumers[name].members if name in self._consumers else {},
            ):
                if caller in members:
                    members[caller].seen_ms = now_ms
        return True

    # Leaving

    def leave(self, caller: Caller, *, producer: str | None, consumer: str | None) -> None:
        """Remove a client from a group."""
        if producer is not None:
            self._drop_producer(producer, caller)
        if consumer is not None:
            self._drop_consumer(consumer, caller)

    def lost(self, caller: Caller) -> None:
        """Remove the client of a closed connection."""
        self._forget_asker(caller)
        self._heartbeat_bytes -= self._beats.pop(caller, 0)
        for name in self._groups_of.pop(caller, {}):
            self._drop_producer(name, caller)
            self._drop_consumer(name, caller)

    def expire(self, now_ms: int) -> int:
        """Expire clients that were silent for too long; returns how many."""
        oldest_ms = now_ms - self._expiry_ms
        gone = [
            (name, caller)
            for name, group in self._consumers.items()
            for caller, client in group.members.items()
            if client.seen_ms < oldest_ms
        ]
        for name, caller in gone:
            self._drop_consumer(name, caller)
        silent = [
            (name, caller)
            for name, members in self._producers.items()
            for caller, client in members.items()
            if client.seen_ms < oldest_ms
        ]
        for name, caller in silent:
            self._drop_producer(name, caller)
        return len(gone) + len(silent)

    def _drop_producer(self, name: str, caller: Caller) -> None:
        members = self._producers.get(name, {})
        client = members.pop(caller, None)
        if client is None:
            return
        self._membership_count -= 1
        if not members:
            del self._producers[name]
        callers = self._producing[client.client_id]
        callers[caller] -= 1
        if not callers[caller]:
            del callers[caller]
        if not callers:
            del self._producing[client.client_id]

    def _drop_consumer(self, name: str, caller: Caller) -> None:
        group = self._consumers.get(name)
        if group is None or group.members.pop(caller, None) is None:
            return
        self._membership_count -= 1
        if group.members:
            if group.data.message_model != BROADCASTING:
                self.notices.add(name)
        else:
            del self._consumers[name]
            self._ownership.give_back(name)
            for listener in self.on_emptied:
                listener(name)

    def _callers(self, name: str) -> list[Caller]:
        group = self._consumers.get(name)
        return [] if group is None else list(group.members)
