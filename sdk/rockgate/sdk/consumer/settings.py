"""How a group consumes: the settings of RocketMQ's consumers, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.sdk.consumer.allocation import Allocation, Averagely
from rockgate.sdk.results import Queue

RETRY_COUNT_MAX: Final = 16
BROADCASTING_INSTANCE: Final = "DEFAULT"
LOCK_S_MAX: Final = 30.0
"""A lock that was not renewed for this long may be another member's."""
PULL_IDLE_S_MAX: Final = 120.0
"""A queue that was not pulled for this long has lost its puller, and gets a new one."""
START_AGO: Final = timedelta(minutes=30)
"""How far back a group starts that is to start at a time, if none is given."""
SUSPEND_S_RANGE: Final = (0.01, 30.0)
RANGES: Final = {
    "pull_count_max": (1, 1024),
    "pull_interval_s": (0, 65.535),
    "batch_max": (1, 1024),
    "workers": (1, 1000),
    "tries_max": (-1, 2**31 - 1),
    "suspend_s": SUSPEND_S_RANGE,
}
FLOW_RANGES: Final = {
    "count_max": (1, 65_535),
    "size_max": (1, 1024 << 20),
    "span_max": (1, 65_535),
    "topic_count_max": (1, 6_553_500),
    "topic_size_max": (1, 102_400 << 20),
}
"""What RocketMQ's client allows."""
PERIODS: Final = (
    "consume_timeout_s",
    "lock_renew_s",
    "lock_s_max",
    "pull_idle_s_max",
    "rebalance_s",
    "persist_s",
    "retry_s",
    "local_retry_s",
)


class Model(Enum):
    """Whether a message goes to one member of a group or to all."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


def instance_of(model: Model, given: str | None) -> str | None:
    """The name of a client: a broadcasting one has the same at every start if it was not given one.

    That name is how it finds its offsets again.
    """
    return BROADCASTING_INSTANCE if given is None and model is Model.BROADCASTING else given


class Start(Enum):
    """Where a group begins in a queue of which no offset is known."""

    END = "CONSUME_FROM_LAST_OFFSET"
    BEGINNING = "CONSUME_FROM_FIRST_OFFSET"
    TIME = "CONSUME_FROM_TIMESTAMP"


class OffsetStore(Protocol):
    """Stores the offsets of one group. Queues have the names of topics on the wire."""

    async def load(self) -> None:
        """Prepare the store; called once, when the consumer is opened. An error fails the open."""

    async def read(self, queue: Queue) -> int | None:
        """The offset of the first message that is not consumed; None for a queue that is new.

        What this raises is logged, and the queue is not consumed until it can be read.
        """

    async def save(self, offsets: Mapping[Queue, int]) -> None:
        """Save these; an error is logged, and they are saved again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """How much of a queue may be cached. Pulling stops once a limit is exceeded, as in RocketMQ."""

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
    """The end, the beginning, or a time: for `Start.TIME` half an hour ago."""
    is_orderly: bool = False
    allocation: Allocation = field(default_factory=Averagely)
    flow: FlowLimits = field(default_factory=FlowLimits)
    pull_count_max: int = 32
    pull_interval_s: float = 0.0
    """The pause after a pull that returned messages, before the next one."""
    pulls_carry_expression: bool = False
    """Whether each pull carries the subscription; else the broker uses that of heartbeats."""
    unit_mode: bool = False
    """The unit mode in heartbeats, for clusters that are divided into units."""
    batch_max: int = 1
    """How many messages a listener is given at once, at most."""
    workers: int = 20
    """How many listeners run at once."""
    tries_max: int | None = None
    """Retries before a message becomes a dead letter; by default 16, and in order unlimited."""
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
    pull_idle_s_max: float = PULL_IDLE_S_MAX
    """After this long without a pull, a queue's puller is restarted."""
    offset_store: OffsetStore | None = None
    """Where the group's progress is stored, if not at brokers or in a file."""
    offsets_folder: Path | None = None
    """Where a broadcasting group keeps its offsets; else `~/.rocketmq_offsets/<client>/<group>`."""
    rebalance_s: float = 20.0
    persist_s: float = 5.0
    retry_s: float = 1.0
    """How long after a failed call it is made again."""
    local_retry_s: float = 5.0
    """How long until a listener is called again for a message that no broker took back."""

    def __post_init__(self) -> None:
        # Types are checked too: what is read from a file or an environment is not what mypy saw.
        if not isinstance(self.model, Model):
            raise ValueError(f"model must be a Model, not {self.model!r}.")
        if not callable(getattr(self.allocation, "allocate", None)):
            raise ValueError(f"allocation must be a strategy, not {self.allocation!r}.")
        for name, range_ in RANGES.items():
            _check(name, getattr(self, name), range_)
        for name, range_ in FLOW_RANGES.items():
            _check(f"flow.{name}", getattr(self.flow, name), range_)
        for name in PERIODS:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} must be more than 0, not {value}.")
        if self.lock_renew_s >= self.lock_s_max:
            raise ValueError(
                f"lock_renew_s ({self.lock_renew_s}) must be less than lock_s_max "
                f"({self.lock_s_max})."
            )
        if self.start is Start.TIME:
            object.__setattr__(self, "start", datetime.now(UTC) - START_AGO)
        elif isinstance(self.start, datetime):
            if self.start.tzinfo is None:
                raise ValueError(f"start ({self.start}) has no time zone.")
        elif not isinstance(self.start, Start):
            raise ValueError(f"start must be a Start or a datetime, not {self.start!r}.")

    @property
    def retry_count_max(self) -> int:
        """How often a message may be redelivered; -1 without limit."""
        if self.tries_max is not None:
            return self.tries_max
        return -1 if self.is_orderly else RETRY_COUNT_MAX

    @property
    def start_kind(self) -> Start:
        """The kind of start, without its time."""
        return Start.TIME if isinstance(self.start, datetime) else self.start

    def data(self, group: str) -> ConsumerData:
        """Its description in heartbeats, besides the subscriptions."""
        return ConsumerData(
            group_name=group,
            message_model=self.model.value,
            consume_from_where=self.start_kind.value,
            unit_mode=self.unit_mode,
        )


def _check(name: str, value: float | None, range_: tuple[float, float]) -> None:
    least, most = range_
    if value is not None and not least <= value <= most:
        raise ValueError(f"{name} must be {least:,} to {most:,}, not {value:,}.")
