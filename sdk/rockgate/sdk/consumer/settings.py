"""How a group consumes: the settings of RocketMQ's consumers, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Final

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.sdk.consumer.allocation import Allocation, Averagely

RETRY_COUNT_MAX: Final = 16
LOCK_S_MAX: Final = 30.0
"""A lock that was not renewed for so long may be somebody else's."""
SUSPEND_S_RANGE: Final = (0.01, 30.0)
RANGES: Final = {
    "pull_count_max": (1, 1024),
    "batch_max": (1, 1024),
    "workers": (1, 1000),
}
"""What RocketMQ's client allows."""


class Model(Enum):
    """Whether a message goes to one member of a group or to all."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class Start(Enum):
    """Where a group begins in a queue of which no offset is known."""

    END = "CONSUME_FROM_LAST_OFFSET"
    BEGINNING = "CONSUME_FROM_FIRST_OFFSET"
    TIME = "CONSUME_FROM_TIMESTAMP"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """How much of a queue may be cached. A limit holds when it is exceeded, as RocketMQ has it."""

    count_max: int = 1000
    size_max: int = 100 * 1024 * 1024
    span_max: int = 2000
    """Between the first and the last offset: one message that hangs holds up no more than this."""
    topic_count_max: int | None = None
    """Of all queues of a topic that are held here, instead of `count_max` of each."""
    topic_size_max: int | None = None

    def shared_by(self, queue_count: int) -> FlowLimits:
        """What each queue of a topic may cache, given the number of queues."""
        count_max, size_max = self.count_max, self.size_max
        if self.topic_count_max is not None:
            count_max = max(1, self.topic_count_max // max(1, queue_count))
        if self.topic_size_max is not None:
            size_max = max(1, self.topic_size_max // max(1, queue_count))
        return replace(self, count_max=count_max, size_max=size_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How one member of a group consumes."""

    model: Model = Model.CLUSTERING
    start: Start | datetime = Start.END
    """The end, the beginning, or what was stored since a time."""
    is_orderly: bool = False
    allocation: Allocation = field(default_factory=Averagely)
    flow: FlowLimits = field(default_factory=FlowLimits)
    pull_count_max: int = 32
    batch_max: int = 1
    """How many messages a listener is given at once, at most."""
    workers: int = 20
    """How many listeners run at once."""
    tries_max: int | None = None
    """After so many retries a message is a dead letter; without, 16 times, and in order always."""
    consume_timeout_s: float = 900.0
    """How long a listener may take before its message is sent back."""
    suspend_s: float = 1.0
    """How long a queue rests after a failure, in order; 10 ms to 30 s."""
    auto_commit: bool = True
    """In order: a message is done when its listener returns. Without, `ack` commits it and all
    before it, and `retry` rolls back to what was last committed."""
    lock_renew_s: float = 20.0
    lock_s_max: float = LOCK_S_MAX
    """How long a queue is consumed in order without its lock being renewed."""
    offsets_folder: Path | None = None
    """Where a broadcasting group keeps its offsets; else `~/.rocketmq_offsets/<client>/<group>`."""
    rebalance_s: float = 20.0
    persist_s: float = 5.0
    retry_s: float = 1.0
    """How long after a failed call it is made again."""
    local_retry_s: float = 5.0
    """How long until a listener is called again for a message that no broker took back."""

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most:,}, not {value:,}.")
        least_s, most_s = SUSPEND_S_RANGE
        if not least_s <= self.suspend_s <= most_s:
            raise ValueError(f"suspend_s must be {least_s} to {most_s}, not {self.suspend_s}.")
        if self.lock_renew_s >= self.lock_s_max:
            raise ValueError(
                f"lock_renew_s ({self.lock_renew_s}) must be less than lock_s_max "
                f"({self.lock_s_max})."
            )
        if isinstance(self.start, datetime):
            if self.start.tzinfo is None:
                raise ValueError(f"Start time {self.start} has no time zone.")
        elif self.start is Start.TIME:
            raise ValueError("Give the time to start from as a datetime.")

    @property
    def retry_count_max(self) -> int:
        """How often a message may come again; -1 without end."""
        if self.tries_max is not None:
            return self.tries_max
        return -1 if self.is_orderly else RETRY_COUNT_MAX

    @property
    def start_kind(self) -> Start:
        """Where it begins, without the time."""
        return Start.TIME if isinstance(self.start, datetime) else self.start

    def data(self, group: str) -> ConsumerData:
        """What a heartbeat says of it, besides what is subscribed."""
        return ConsumerData(
            group_name=group,
            message_model=self.model.value,
            consume_from_where=self.start_kind.value,
        )
