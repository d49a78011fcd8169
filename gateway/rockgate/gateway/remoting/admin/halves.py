"""Half messages for administrators: listed, described, committed or rolled back.

An id is the offset of a half message, or the id that its producer gave it. The oldest have the
lowest offsets, so pages go by offset. docs/internals/half-messages.md specifies decisions: the
first one wins, be it this one, the producer's or the end of the checks.
"""

from __future__ import annotations

import asyncio
from typing import Final

from rockgate.gateway.remoting.admin.views import view_of
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.messages.check_back import CheckBacks
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol.remoting.bodies.admin import HalfPage, HalfView, Resolved
from rockgate.protocol.remoting.headers.admin import ListHalvesHeader
from rockgate.store.api.clock import Clock
from rockgate.store.api.half import MESSAGES, Half, HalfMessages
from rockgate.store.api.queues import Queues
from rockgate.store.api.read import EntryReader, Lookup, no_batch_keys
from rockgate.store.api.topics import TopicLookup

HALVES_PER_TURN: Final = 2_000
LIMIT_MAX: Final = 200
CANDIDATES_MAX: Final = 16


class HalfAdmin:
    """Lists and decides half messages. Stateless."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: EntryReader,
        lookup: Lookup,
        clock: Clock,
        cold_reads: ColdReads,
        undecided: HalfMessages,
        halves: Halves,
        check_backs: CheckBacks,
        clients: Clients,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._lookup = lookup
        self._clock = clock
        self._cold_reads = cold_reads
        self._undecided = undecided
        self._halves = halves
        self._check_backs = check_backs
        self._clients = clients

    async def page(self, asked: ListHalvesHeader) -> HalfPage:
        """Return the oldest after the last page, in order of age."""
        limit = max(1, min(asked.limit, LIMIT_MAX))
        now_ms = self._clock.now_ms()
        candidates: list[int] = []
        bound = 1 << 63
        for looked, half in enumerate(self._undecided.walk(), start=1):
            if (
                half is not None
                and asked.after < half.offset < bound
                and now_ms - half.prepared_ms >= asked.open_ms
                and asked.group in (None, half.group)
            ):
                candidates.append(half.offset)
                if len(candidates) >= 2 * limit + 64:
                    candidates = sorted(candidates)[: limit + 1]
                    bound = candidates[-1]
            if looked % HALVES_PER_TURN == 0:
                await asyncio.sleep(0)
        candidates = sorted(candidates)
        views = [await self._view(offset, 0) for offset in candidates[:limit]]
        return HalfPage(
            undecided=len(self._undecided),
            now_ms=now_ms,
            next=candidates[limit - 1] if len(candidates) > limit else -1,
            halves=[view for view in views if view is not None],
        )

    async def describe(self, id_: str, preview: int) -> HalfView | None:
        """Return an undecided half message, by either of its ids."""
        half = self._find(id_)
        return None if half is None else await self._view(half.offset, preview)

    async def resolve(self, id_: str, *, is_commit: bool) -> Resolved:
        """Commit or roll back an undecided half message."""
        half = self._find(id_)
        view = None if half is None else await self._view(half.offset, 0)
        if half is None or view is None:
            return Resolved(is_resolved=False)
        if is_commit:
            is_first = self._halves.commit(half.offset, half.group) is not None
        else:
            is_first = self._halves.roll_back(half.offset, half.group)
        return Resolved(is_resolved=is_first, half=view)

    async def _view(self, offset: int, preview: int) -> HalfView | None:
        queue = self._queues.of(self._topics.get(MESSAGES.decode()).id)[0]
        unit = queue.find(offset)
        await self._cold_reads.load(self._cold_reads.cold([unit]))
        # It may have been decided while it was loaded, and moved or removed.
        half, unit = self._undecided.find(offset), queue.find(offset)
        if half is None or unit is None or unit.base >= self._reader.high_watermark(queue):
            return None
        producers = [each for each in self._clients.producers(half.group) if each.caller.is_open]
        return HalfView(
            offset=half.offset,
            group=half.group,
            prepared_ms=half.prepared_ms,
            check_count=half.check_count,
            checked_ms=half.checked_ms,
            next_check_ms=self._check_backs.next_ms(half),
            producer_count=len(producers),
            message=view_of(self._reader.entry(queue, unit), offset, preview),
        )

    def _find(self, id_: str) -> Half | None:
        if id_.isascii() and id_.isdecimal() and len(id_) <= 18:
            half = self._undecided.find(int(id_))
            if half is not None:
                return half
        lookup = self._lookup
        key = id_.encode("utf-8", "surrogatepass")
        for position in lookup.by_key(
            MESSAGES, key, limit=CANDIDATES_MAX, batch_keys=no_batch_keys
        ):
            found = lookup.entry(position)
            half = None if found is None else self._undecided.find(found[1].unit.base)
            if half is not None:
                return half
        return None
