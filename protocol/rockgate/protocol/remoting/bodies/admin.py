"""Bodies of rockgate's admin requests, codes 31000 to 31099. Plain JSON."""

from enum import StrEnum

import msgspec

DUE_BOUNDS_MS = (0, 60_000, 3_600_000, 86_400_000)
"""The upper bounds of the groups of due times; the last group has no bound."""
DUE_NAMES = ("overdue", "minute", "hour", "day", "later")


class MessageView(msgspec.Struct, kw_only=True, rename="camel"):
    """A message as operators see it, wherever it is stored."""

    topic: str
    """The topic that its producer sent it to."""
    queue: int
    message_id: str | None = None
    """The id that its producer gave it."""
    keys: str | None = None
    tags: str | None = None
    size: int = 0
    """Of the body."""
    born_ms: int = -1
    stored_ms: int = -1
    reconsume_times: int = 0
    properties: list[tuple[str, str]] = []
    body: bytes | None = None
    """Its first bytes, as many as requested; None is a null value."""


class DelayPlace(msgspec.Struct, kw_only=True, rename="camel"):
    """A delayed message: where it is stored, and until when."""

    id: str
    """`topic/queue/offset` of where it is stored."""
    due_ms: int
    sequence: int


class DelayCount(msgspec.Struct, kw_only=True, rename="camel"):
    """How many messages are delayed in one topic, by due time."""

    topic: str
    queue: int
    target: str | None = None
    """The topic that they will be delivered to, where that was requested."""
    due: list[int]
    """In the order of DUE_NAMES."""
    buckets: dict[int, int] = {}
    """How many are due in each bucket that has any, by due time divided by the width."""


class DelayScan(msgspec.Struct, kw_only=True, rename="camel"):
    """31001's response."""

    waiting: int
    now_ms: int
    next: int
    """Where the next part begins; -1 after the last."""
    end: int
    """The end of the log at this moment: reading up to it covers all messages delayed so far."""
    counts: list[DelayCount] = []
    soonest: list[DelayPlace] = []


class Delayed(msgspec.Struct, kw_only=True, rename="camel"):
    """One message that is delayed, or was."""

    id: str
    is_waiting: bool
    due_ms: int = -1
    origin: str = ""
    """How it was delayed: `level 3`, `timer`, `headers`."""
    message: MessageView | None = None
    delivered: str | None = None
    """`topic/queue/offset` of the delivered message, if known."""


class DelayedList(msgspec.Struct, kw_only=True, rename="camel"):
    """31002's response: the known ones of the ids, each with the id that was requested."""

    found: dict[str, Delayed] = {}


class Cancelled(msgspec.Struct, kw_only=True, rename="camel"):
    """31003's response."""

    is_cancelled: bool
    delayed: Delayed | None = None
    """None: the id is unknown."""


class DeliveredEarly(msgspec.Struct, kw_only=True, rename="camel"):
    """31004's response."""

    is_delivered: bool
    delayed: Delayed | None = None
    """With where it was delivered. None: the id is unknown."""


class HalfView(msgspec.Struct, kw_only=True, rename="camel"):
    """One undecided half message."""

    offset: int
    group: str
    prepared_ms: int
    check_count: int
    checked_ms: int
    next_check_ms: int
    producer_count: int
    """Connected producers of the group, which can be asked for the outcome."""
    message: MessageView


class HalfPage(msgspec.Struct, kw_only=True, rename="camel"):
    """31011's response."""

    undecided: int
    now_ms: int
    next: int
    """The value of `after` for the next page; -1 if there is none."""
    halves: list[HalfView] = []


class HalfList(msgspec.Struct, kw_only=True, rename="camel"):
    """31012's response: the undecided ones of the ids, each with the id that was requested."""

    found: dict[str, HalfView] = {}


class Resolved(msgspec.Struct, kw_only=True, rename="camel"):
    """31013's response."""

    is_resolved: bool
    """False: it was decided before, or never existed."""
    half: HalfView | None = None
    """Its state before this request."""


class DeadLetterQueue(msgspec.Struct, kw_only=True, rename="camel"):
    """The dead-letter topic of a group."""

    group: str
    queue: int
    start: int
    end: int
    oldest_ms: int
    newest_ms: int
    """When the first and the last of them were stored; -1 if there is none."""


class DeadLetterQueues(msgspec.Struct, kw_only=True, rename="camel"):
    """31021's response."""

    queues: list[DeadLetterQueue] = []


class DeadLetter(msgspec.Struct, kw_only=True, rename="camel"):
    """One dead letter; unknown numbers are -1."""

    group: str
    queue: int
    offset: int
    origin_topic: str | None
    origin_queue: int
    origin_offset: int
    origin_message_id: str | None
    failed_ms: int
    """When it was first sent back."""
    dead_ms: int
    reason: str | None
    is_resent: bool
    message: MessageView


class DeadLetterPage(msgspec.Struct, kw_only=True, rename="camel"):
    """31022's response."""

    letters: list[DeadLetter] = []
    next: int
    """The offset of the next page; -1 after the last."""


class Resend(msgspec.Struct, kw_only=True, rename="camel"):
    """31023's response: where the resent message is stored."""

    is_resent: bool
    """False: it was resent before, and nothing was done."""
    topic: str | None = None
    queue: int = -1
    offset: int = -1


class LogDamage(msgspec.Struct, kw_only=True, rename="camel"):
    """A damaged place in a file of the data directory."""

    file: str
    position: int
    reason: str


class LogReport(msgspec.Struct, kw_only=True):
    """What a check of the log has read and found."""

    log_start: int = 0
    log_end: int = 0
    segment_count: int = 0
    entry_count: int = 0
    batch_count: int = 0
    index_count: int = 0
    key_file_count: int = 0
    snapshot_count: int = 0
    damage_count: int = 0
    damage: list[LogDamage] = []
    """The first ones."""
    notes: list[str] = []


class LogCheckState(StrEnum):
    """How far a check is."""

    NEVER = "never"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class LogCheck(msgspec.Struct, kw_only=True, rename="camel"):
    """31041's response: the check that runs, or ran last since the server was started."""

    state: LogCheckState
    started_ms: int = -1
    ended_ms: int = -1
    read_bytes: int = 0
    total_bytes: int = 0
    report: LogReport | None = None
    problem: str | None = None


class OffsetRange(msgspec.Struct, array_like=True, frozen=True):
    """Offsets of one partition, of which 31031 counts the empty ones."""

    topic_id: str
    """In hex, so that other servers do not mistake it for one of their topics."""
    queue: int
    first: int
    end: int


class EmptyCounts(msgspec.Struct, kw_only=True, rename="camel"):
    """31031's response: how many offsets of each range are empty; -1 if there is no such topic."""

    counts: list[int] = []
