"""Bodies of rockgate's admin requests, codes 31000 to 31099. Plain JSON."""

import msgspec

DUE_BOUNDS_MS = (0, 60_000, 3_600_000, 86_400_000)
"""How far ahead each group of due times reaches; the last has all that is later."""
DUE_NAMES = ("overdue", "minute", "hour", "day", "later")


class MessageView(msgspec.Struct, kw_only=True, rename="camel"):
    """A message as an operator sees it, wherever it lies."""

    topic: str
    """Where its producer sent it."""
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
    """The first bytes of it, as many as were asked for; None is a null value."""


class DelayPlace(msgspec.Struct, kw_only=True, rename="camel"):
    """Something that waits: where, and until when."""

    id: str
    """`topic/queue/offset` of where it waits."""
    due_ms: int
    sequence: int


class DelayCount(msgspec.Struct, kw_only=True, rename="camel"):
    """How many wait in one place, by due time."""

    topic: str
    queue: int
    target: str | None = None
    """The topic that they will be delivered to, where that was looked at."""
    due: list[int]
    """In the order of DUE_NAMES."""


class DelayScan(msgspec.Struct, kw_only=True, rename="camel"):
    """31001's answer."""

    waiting: int
    now_ms: int
    next: int
    """Where the next part begins; -1 behind the last."""
    end: int
    """Where what was there at this moment ends: who goes on to it has met all that waited."""
    counts: list[DelayCount] = []
    soonest: list[DelayPlace] = []


class Delayed(msgspec.Struct, kw_only=True, rename="camel"):
    """One message that waits, or that does not any more."""

    id: str
    is_waiting: bool
    due_ms: int = -1
    origin: str = ""
    """What made it wait: `level 3`, `timer`, `headers`."""
    message: MessageView | None = None
    delivered: str | None = None
    """`topic/queue/offset` of what it became, where that is known."""


class DelayedList(msgspec.Struct, kw_only=True, rename="camel"):
    """31002's answer: those of the ids that are known, with the id that was asked for."""

    found: dict[str, Delayed] = {}


class Cancelled(msgspec.Struct, kw_only=True, rename="camel"):
    """31003's answer."""

    is_cancelled: bool
    delayed: Delayed | None = None
    """None: nothing with this id is known."""


class HalfView(msgspec.Struct, kw_only=True, rename="camel"):
    """One undecided half message."""

    offset: int
    group: str
    prepared_ms: int
    check_count: int
    checked_ms: int
    next_check_ms: int
    producer_count: int
    """Producers of the group that are connected and can be asked."""
    message: MessageView


class HalfPage(msgspec.Struct, kw_only=True, rename="camel"):
    """31011's answer."""

    undecided: int
    now_ms: int
    next: int
    """What the next page is asked `after`; -1 if there is none."""
    halves: list[HalfView] = []


class HalfList(msgspec.Struct, kw_only=True, rename="camel"):
    """31012's answer: those of the ids that are undecided, with the id that was asked for."""

    found: dict[str, HalfView] = {}


class Resolved(msgspec.Struct, kw_only=True, rename="camel"):
    """31013's answer."""

    is_resolved: bool
    """False: it was decided before, or never there."""
    half: HalfView | None = None
    """As it was until now."""


class DeadLetterQueue(msgspec.Struct, kw_only=True, rename="camel"):
    """Where dead letters of a group lie."""

    group: str
    queue: int
    start: int
    end: int
    oldest_ms: int
    newest_ms: int
    """When the first and the last of them were stored; -1 if there is none."""


class DeadLetterQueues(msgspec.Struct, kw_only=True, rename="camel"):
    """31021's answer."""

    queues: list[DeadLetterQueue] = []


class DeadLetter(msgspec.Struct, kw_only=True, rename="camel"):
    """One dead letter; a number that is not known is -1."""

    group: str
    queue: int
    offset: int
    origin_topic: str | None
    origin_queue: int
    origin_offset: int
    origin_message_id: str | None
    failed_ms: int
    """When it was first given back."""
    dead_ms: int
    reason: str | None
    is_resent: bool
    message: MessageView


class DeadLetterPage(msgspec.Struct, kw_only=True, rename="camel"):
    """31022's answer."""

    letters: list[DeadLetter] = []
    next: int
    """The offset of the next page; -1 behind the last."""


class Resend(msgspec.Struct, kw_only=True, rename="camel"):
    """31023's answer: where it lies now."""

    is_resent: bool
    """False: it was sent again before, and nothing was done."""
    topic: str | None = None
    queue: int = -1
    offset: int = -1


class OffsetRange(msgspec.Struct, array_like=True, frozen=True):
    """Offsets of one partition, of which 31031 counts the empty ones."""

    topic_id: str
    """In hex, so that no other server takes it for a topic of its own."""
    queue: int
    first: int
    end: int


class EmptyCounts(msgspec.Struct, kw_only=True, rename="camel"):
    """31031's answer: for each range how many of its offsets hold nothing; -1: no such topic."""

    counts: list[int] = []
