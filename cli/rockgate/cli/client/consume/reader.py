"""Reading topics until stopped: from where, as a member of a group or alone, how far.

What counts as consumed is what was written out. That, and nothing beyond it, is committed: every
few seconds, before partitions are revoked, and at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.cli.client.admin import committed
from rockgate.cli.client.admin.offsets import EARLIEST, LATEST, bounds, list_offsets
from rockgate.cli.client.consume.fetcher import Chunk, Fetcher
from rockgate.cli.client.consume.member import Member
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unreachable
from rockgate.cli.client.kafka.view import Place
from rockgate.protocol.kafka.records.record import Record

COMMIT_S: Final = 5.0
GROWTH_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to start: a special or a real time, an offset, or a count of records before the end."""

    time_ms: int = LATEST
    offset: int | None = None
    before_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to read and when to stop."""

    topics: Sequence[str]
    partitions: Sequence[int] | None = None
    start: Start = Start()
    group: str | None = None
    record_count_max: int | None = None
    stops_at_end: bool = False
    idle_s_max: float | None = None
    is_committed: bool = False
    commits: bool = True


Write = Callable[[Chunk, Sequence[Record]], Awaitable[None]]


class Reader:
    """One run of `consume`. `run` returns when the plan is fulfilled; a cancel cleans up, too."""

    def __init__(
        self, cluster: Cluster, plan: Plan, write: Write, *, note: Callable[[str], None]
    ) -> None:
        self.record_count = 0
        self._cluster = cluster
        self._plan = plan
        self._write = write
        self._note = note
        start = plan.start
        is_latest = start.offset is None and start.before_end is None and start.time_ms == LATEST
        self._fetcher = Fetcher(
            cluster,
            is_committed=plan.is_committed,
            reset_to=LATEST if is_latest else EARLIEST,
        )
        self._member = Member(cluster, plan.group, plan.topics) if plan.group else None
        self._ends: dict[Place, int] = {}
        self._consumed: dict[Place, int] = {}
        self._committed_at = 0.0
        self._looked_at = 0.0

    async def run(self) -> None:
        """Read until the plan is fulfilled."""
        clock = asyncio.get_running_loop().time
        await self._cluster.topics(self._plan.topics)
        try:
            await self._begin()
            self._committed_at = self._looked_at = last_news = clock()
            while not self._is_done():
                if self._member is not None and self._member.is_stale.is_set():
                    await self._join_again()
                chunks = await self._fetcher.poll()
                self._log_resets()
                for chunk in chunks:
                    await self._take(chunk)
                    if self._is_full():
                        return
                last_news = clock() if any(chunk.records for chunk in chunks) else last_news
                idle_s_max = self._plan.idle_s_max
                if idle_s_max is not None and clock() - last_news >= idle_s_max:
                    return
                await self._look_around(clock())
        except BrokenPipeError:
            # The reader closed the pipe; what it did not read is not consumed.
            return
        finally:
            self._fetcher.stop()
            await self._end()

    # Private

    async def _begin(self) -> None:
        if self._member is not None:
            await self._take_over(await self._member.join())
            return
        topics = await self._cluster.topics(self._plan.topics)
        places = [
            (name, index)
            for name in self._plan.topics
            for index in (self._plan.partitions or topics[name].partitions)
        ]
        await self._read_from(await self._starts(places))

    async def _read_from(self, positions: Mapping[Place, int]) -> None:
        self._fetcher.assign(positions)
        self._ends = {}
        if self._plan.stops_at_end and positions:
            found = await list_offsets(
                self._cluster,
                dict.fromkeys(positions, LATEST),
                is_committed=self._plan.is_committed,
            )
            self._ends = {place: _offset(place, each) for place, each in found.items()}

    async def _starts(self, places: Sequence[Place]) -> dict[Place, int]:
        """The offset at which to start each partition; Refused for one that does not exist."""
        start = self._plan.start
        if start.offset is not None:
            # Asked anyway, so that a missing partition is an error instead of an endless wait.
            found = await list_offsets(self._cluster, dict.fromkeys(places, EARLIEST))
            return {
                place: start.offset for place, each in found.items() if _offset(place, each) >= 0
            }
        if start.before_end is None and start.time_ms < 0:
            found = await list_offsets(self._cluster, dict.fromkeys(places, start.time_ms))
            return {place: _offset(place, each) for place, each in found.items()}
        limits = await bounds(self._cluster, list(places), is_committed=self._plan.is_committed)
        ends = {}
        for place, each in limits.items():
            if isinstance(each, Refused):
                raise each.at(place)
            ends[place] = each
        if start.before_end is not None:
            return {p: max(each.start, each.end - start.before_end) for p, each in ends.items()}
        found = await list_offsets(self._cluster, dict.fromkeys(places, start.time_ms))
        offsets = {place: _offset(place, each) for place, each in found.items()}
        return {place: ends[place].end if o < 0 else o for place, o in offsets.items()}

    async def _take_over(self, places: Sequence[Place]) -> None:
        """Resume at the group's committed offsets; without one, as the plan says."""
        assert self._plan.group is not None
        known = await committed.fetch(self._cluster, self._plan.group, places) if places else {}
        missing = [place for place in places if place not in known]
        starts = await self._starts(missing) if missing else {}
        # The start is progress, too: the next member begins there, and not at a later end.
        self._consumed = dict(starts)
        await self._read_from(known | starts)

    async def _join_again(self) -> None:
        """Commit and revoke everything, then take up the new assignment."""
        assert self._member is not None
        if self._member.failure is not None:
            raise self._member.failure
        self._fetcher.assign({})
        try:
            await self._commit()
        except Unreachable:
            # The others resume at the last commit; joining waits for the server.
            self._consumed = {}
        await self._take_over(await self._member.join())

    async def _take(self, chunk: Chunk) -> None:
        records, is_whole = chunk.records, True
        if self._plan.record_count_max is not None:
            left = self._plan.record_count_max - self.record_count
            is_whole, records = len(records) <= left, records[:left]
        end = self._ends.get(chunk.place)
        if end is not None:
            # Records that arrived after the start are not printed.
            remaining = [record for record in records if record.offset < end]
            is_whole, records = is_whole and len(remaining) == len(records), remaining
        if records:
            await self._write(chunk, records)
            self.record_count += len(records)
            self._consumed[chunk.place] = records[-1].offset + 1
        if is_whole:
            self._consumed[chunk.place] = chunk.next_offset

    def _is_full(self) -> bool:
        limit = self._plan.record_count_max
        return limit is not None and self.record_count >= limit

    def _is_done(self) -> bool:
        if self._is_full():
            return True
        if not self._plan.stops_at_end:
            return False
        if self._member is not None and self._member.is_stale.is_set():
            return False
        return all(self._fetcher.positions.get(p, e) >= e for p, e in self._ends.items())

    def _log_resets(self) -> None:
        for (topic, index), old, new in self._fetcher.resets:
            self._note(
                f"Offset {old} of topic {topic} partition {index} is out of range;"
                f" continuing at {new}."
            )
        self._fetcher.resets.clear()

    async def _look_around(self, now: float) -> None:
        """Commit when it is time, and see whether topics have grown."""
        if now - self._committed_at >= COMMIT_S:
            self._committed_at = now
            try:
                await self._commit()
            except Unreachable as error:
                self._note(f"Commit failed, will retry: {error}")
        if now - self._looked_at >= GROWTH_S:
            self._looked_at = now
            if self._member is not None:
                await self._member.check_growth()
            elif self._plan.partitions is None and not self._plan.stops_at_end:
                await self._take_new_partitions()

    async def _take_new_partitions(self) -> None:
        view = await self._cluster.found(self._plan.topics)
        positions = dict(self._fetcher.positions)
        new = [
            (name, index)
            for name, topic in view.topics.items()
            for index in topic.partitions
            if (name, index) not in positions
        ]
        if new:
            self._fetcher.assign(positions | dict.fromkeys(new, 0))

    async def _commit(self) -> None:
        if self._member is None or not self._plan.commits or not self._consumed:
            return
        offsets, self._consumed = self._consumed, {}
        refused = await self._member.commit(offsets)
        if refused is not None and not self._member.is_stale.is_set():
            raise refused
        if refused is not None:
            self._note(f"Commit rejected: {refused}")

    async def _end(self) -> None:
        """Commit and leave; a server that is gone by now is no reason to fail."""
        if self._member is None:
            return
        try:
            await self._commit()
            await self._member.leave()
        except ClientError as error:
            self._note(f"Could not leave the group cleanly: {error}")


def _offset(place: Place, found: object) -> int:
    if isinstance(found, Refused):
        raise found.at(place)
    assert isinstance(found, tuple)
    offset: int = found[0]
    return offset
