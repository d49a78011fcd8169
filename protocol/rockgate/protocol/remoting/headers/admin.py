"""Headers of rockgate's admin requests, codes 31000 to 31099."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class ScanDelaysHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31001: counts of one part of the delayed messages, and the soonest ones."""

    start: Int64 = 0
    """Where the last part ended; 0 at first."""
    limit: Int32 = 0
    """How many of the soonest to return."""
    after_due_ms: Int64 = -1
    after_sequence: Int64 = -1
    """Only messages after this one, for the next page."""
    topic: str | None = None
    """Only messages for this topic; every message is read for it."""
    by_target: bool = False
    """Count by destination topic; every message is read for it."""
    bucket_ms: Int64 = 0
    """Count by due time in buckets of this width, too; 0 for none."""
    bucket_count: Int32 = 0
    """How many buckets from now on; what is due later is in none."""


class DescribeHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31002, 31012: details of messages that the body names, a JSON array of ids."""

    preview: Int32 = 0
    """The most bytes of each body to return."""
    with_due: bool = False
    """Find the due time as well, with one scan for each id that is still delayed."""


class NamedHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31003, 31004: one message, by any of its ids."""

    id: str


class ListHalvesHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31011: a page of undecided half messages, the oldest first."""

    after: Int64 = -1
    """Where the last page ended; -1 at first."""
    limit: Int32 = 100
    group: str | None = None
    open_ms: Int64 = 0
    """Only those that are at least this old."""


class ResolveHalfHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31013: commit a half message, or roll it back."""

    id: str
    commit: bool


class ListDeadLettersHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31021: the groups with dead letters."""

    group: str | None = None
    """Only this group, which must exist; in the store's form."""


class ReadDeadLettersHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31022: dead letters of a group, from an offset on."""

    group: str
    """In the store's form, as Kafka's clients write it."""
    queue: Int32 = 0
    offset: Int64 = 0
    limit: Int32 = 100
    preview: Int32 = 0
    """The most bytes of each body to return."""


class ResendDeadLetterHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31023: resend one to its original topic."""

    group: str
    queue: Int32 = 0
    offset: Int64
    to: str | None = None
    """Another topic instead."""
    again: bool = False
    """Even if it was resent before."""
    dry_run: bool = False
    """Check everything, and send nothing."""


class CheckLogHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """31041: a check of the server's log."""

    action: str = "status"
    """`start`, `stop` or `status`."""
