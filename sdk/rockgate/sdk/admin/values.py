"""Values that the admin client accepts and returns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from rockgate.protocol.remoting.bodies.queues import MessageQueue
from rockgate.sdk.results import Queue


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as one broker has it."""

    read_queues: int = 8
    write_queues: int = 8
    perm: int = 6
    """4 to read, 2 to write, 6 for both."""
    is_ordered: bool = False
    attributes: Mapping[str, str] = {}


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a group may consume; the defaults are RocketMQ's."""

    is_enabled: bool = True
    may_broadcast: bool = True
    is_orderly: bool = False
    retry_count_max: int = 16
    """After this many retries a message becomes a dead letter."""
    retry_queues: int = 1
    notifies_members: bool = True
    """Whether members are notified at once when others join or leave."""


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker and its replicas."""

    name: str
    cluster: str
    addresses: Mapping[int, str]
    """By id; 0 is the master."""


class BrokerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker reports about itself."""

    version: str
    booted_at: datetime | None
    values: Mapping[str, str]
    """All of it, by RocketMQ's names."""


class QueueRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue holds."""

    queue: Queue
    min_offset: int
    max_offset: int
    """The offset that its next message gets."""
    written_at: datetime | None
    """When its last message was stored."""


class QueueLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group is in a queue."""

    queue: Queue
    end: int
    committed: int
    consumed_at: datetime | None
    """When the last message that it has consumed was stored."""

    @property
    def lag(self) -> int:
        """Its lag: how many messages it has not consumed yet."""
        return max(0, self.end - self.committed)


class GroupLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group is."""

    group: str
    rate: float
    """Messages a second, as its brokers have counted."""
    queues: tuple[QueueLag, ...]

    @property
    def lag(self) -> int:
        """Its lag over all queues: how many messages it has not consumed yet."""
        return sum(each.lag for each in self.queues)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is connected to a broker."""

    client_id: str
    address: str
    language: str
    version: int


class GroupConnections(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a group, and what they consume."""

    connections: tuple[Connection, ...]
    subscriptions: Mapping[str, str]
    """The expression of each topic."""
    model: str | None
    consume_type: str | None
    """CONSUME_PASSIVELY for listeners, CONSUME_ACTIVELY for applications that pull."""
    start: str | None


class RunningInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer reports about itself."""

    properties: Mapping[str, str]
    subscriptions: Mapping[str, str]
    """The expression of each topic."""
    queues: Mapping[Queue, Mapping[str, object]]
    """What it has cached of each queue, by RocketMQ's names."""
    stats: Mapping[str, Mapping[str, float]]
    """Rates and times of each topic, by RocketMQ's names."""
    stack: str | None
    """The stacks of its threads or tasks, if requested."""


class DirectResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a consumer has dealt with a message that it was given to consume at once."""

    result: str
    """CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION or CR_RETURN_NULL."""
    took: timedelta
    is_orderly: bool
    remark: str | None

    @property
    def is_consumed(self) -> bool:
        """Whether it consumed the message."""
        return self.result in ("CR_SUCCESS", "CR_COMMIT")


def queue_of(wire: MessageQueue) -> Queue:
    """A queue as the SDK names it."""
    return Queue(wire.topic, wire.broker_name, wire.queue_id)


def time_of(ms: int) -> datetime | None:
    """A time in a broker's response; None if it has none, or one out of a calendar's range."""
    if ms <= 0:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
