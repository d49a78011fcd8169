"""Which of the offsets that were read a member gets: a pure function of window, read and policy.

docs/internals/groups-share.md specifies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rockgate.gateway.kafka.groups.share.config import SharePolicy
from rockgate.gateway.kafka.share.batches import Piece
from rockgate.store.api.inflight import SHARE_IN_FLIGHT_MAX, Run, ShareWindow

SPAN_MAX = 5_000
"""Offsets from the first available one that are read at once to find further ones."""
Range = tuple[int, int]
"""From the first offset to before the second."""


@dataclass(slots=True)
class Plan:
    """What is to be acquired of one partition."""

    end: int
    """Where the window is to end."""
    taken: list[Range] = field(default_factory=list)
    gone: list[Range] = field(default_factory=list)
    """Available offsets whose records no longer exist."""

    @property
    def count(self) -> int:
        """How many offsets are acquired."""
        return sum(end - first for first, end in self.taken)


def reach(window: ShareWindow, now_ms: int, room: int) -> tuple[int, int | None] | None:
    """Where to read: from an offset, and up to one or, if None, as far as there is anything.

    None if nothing can be acquired whatever is there.
    """
    available = window.available(now_ms)
    if not available:
        return (window.end, None) if room > 0 else None
    first = available[0].first
    near = [run.end for run in available if run.end - first <= SPAN_MAX] or [available[0].end]
    return first, None if near[-1] == window.end and room > 0 else near[-1]


def room_of(window: ShareWindow, policy: SharePolicy) -> int:
    """How many more offsets of a partition may be in flight."""
    return min(policy.locks_max, SHARE_IN_FLIGHT_MAX) - len(window)


def portion(run: Run, deliveries_max: int) -> int | None:
    """How many of a run that failed before are delivered at once; None if all.

    From half of the limit on fewer and fewer, so that the records that consumers fail at are found;
    with its last delivery a record is alone.
    """
    often = (deliveries_max + 1) // 2
    if run.deliveries < often:
        return None
    if deliveries_max > 2 and run.deliveries >= deliveries_max - 1:
        return 1
    return max(1, (run.end - run.first) >> (run.deliveries - often + 1))


def plan(
    window: ShareWindow,
    pieces: Sequence[Piece],
    read_from: int,
    read_to: int,
    *,
    records_max: int,
    ranges_max: int,
    is_strict: bool,
    policy: SharePolicy,
    now_ms: int,
) -> Plan:
    """Decide what of the batches that were read is acquired."""
    planned = Plan(window.end)
    left = records_max
    until = min(read_to, window.end)
    for run in window.available(now_ms):
        if run.first >= until or left <= 0:
            break
        if len(planned.taken) + len(planned.gone) >= ranges_max:
            return planned
        share = portion(run, policy.deliveries_max)
        if share is not None and planned.taken:
            # It is delivered without others, next time.
            return planned
        wanted = left if share is None else min(left, share)
        left -= _take_again(planned, run, pieces, until, wanted)
        if share is not None and planned.taken:
            return planned
    if left > 0 and read_to > window.end:
        _take_new(planned, window, pieces, read_to, left, room_of(window, policy), is_strict)
    return planned


def _take_again(planned: Plan, run: Run, pieces: Sequence[Piece], until: int, wanted: int) -> int:
    """Take offsets of an available run; return how many."""
    count, at, end = 0, run.first, min(run.end, until)
    for first, last in _within(pieces, at, end):
        if count >= wanted:
            return count
        if first > at:
            planned.gone.append((at, first))
        at = min(last, first + wanted - count)
        planned.taken.append((first, at))
        count += at - first
    if at < end and count < wanted:
        planned.gone.append((at, end))
    return count


def _take_new(
    planned: Plan,
    window: ShareWindow,
    pieces: Sequence[Piece],
    read_to: int,
    left: int,
    room: int,
    is_strict: bool,
) -> None:
    """Take offsets that were never acquired: whole batches, unless that is too much."""
    for piece in pieces:
        if piece.end <= window.end or not piece.is_data:
            continue
        if left <= 0 or room <= 0:
            return
        first = max(piece.first, window.end)
        count = min(piece.end - first, room, left if is_strict else room)
        planned.taken.append((first, first + count))
        planned.end = first + count
        left, room = left - count, room - count
        if planned.end < piece.end:
            return
    planned.end = max(planned.end, read_to)


def _within(pieces: Iterable[Piece], first: int, end: int) -> Iterator[Range]:
    """The ranges of a range that have records."""
    for piece in pieces:
        if piece.is_data and piece.end > first and piece.first < end:
            yield max(piece.first, first), min(piece.end, end)
