"""Logs for tests: small segments on memory files, and distinguishable entries."""

from __future__ import annotations

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import Entry
from rockgate.store.clock import ManualClock
from rockgate.store.files.interface import Directory
from rockgate.store.log.commitlog import CommitLog, Draft
from rockgate.store.log.segments import Segments

SEGMENT = 16 << 10
TOPIC = b"orders"


def new_log(directory: Directory, *, segment: int = SEGMENT, start: int = 0) -> CommitLog:
    """An empty log with a clock that stands still."""
    segments = Segments(directory, segment, segment)
    segments.start_at(start)
    return CommitLog(segments, ManualClock())


def loaded(directory: Directory, segment: int = SEGMENT) -> Segments:
    """The segments as a start finds them."""
    segments = Segments(directory, segment, segment)
    segments.load()
    return segments


def body_of(number: int, size: int = 500) -> bytes:
    """A body that is unique to a number."""
    return (b"%08d" % number * (size // 8 + 1))[:size]


def draft(number: int, size: int = 500, *, sys_flag: int = 0) -> Draft:
    """The number-th message of queue 0."""
    return Draft(TOPIC, 0, number, body_of(number, size), sys_flag=sys_flag)


def body_at(view: memoryview, entry: Entry) -> bytes:
    """The body of an entry in a view."""
    return bytes(view[entry.body_at : entry.body_at + entry.body_size])


def numbers(log: CommitLog) -> list[int]:
    """The numbers of the drafts in the log, all verified."""
    found = []
    for view, entry in log.walk(log.start):
        envelope.check(view, entry)
        assert body_at(view, entry) == body_of(entry.queue_offset, entry.body_size)
        found.append(entry.queue_offset)
    return found
