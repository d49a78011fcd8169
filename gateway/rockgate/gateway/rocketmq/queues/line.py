"""The line of one queue: batches that wait, joined into the requests that they will be sent in."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.queues.sequences import SequencePlace
from rockgate.gateway.transcode.remote.sent_records import SentRecords
from rockgate.protocol.kafka.records.batch import BatchHeader

JOINED_BYTES_MAX: Final = 1 << 20
JOINED_COUNT_MAX: Final = 16_000
LINE_BYTES_MAX: Final = 32 << 20
"""Bytes that may wait in the line of one queue; a further batch is refused, to be sent again."""


class WaitingBatch:
    """A batch in the line."""

    __slots__ = (
        "deadline",
        "header",
        "is_all",
        "is_behind",
        "is_checked",
        "outcome",
        "place",
        "sent",
        "size",
    )

    def __init__(
        self, header: BatchHeader, outcome: asyncio.Future[int], *, is_all: bool, deadline: float
    ) -> None:
        self.header = header
        self.outcome = outcome
        self.is_all = is_all
        self.deadline = deadline
        self.size = 0
        self.sent: SentRecords | None = None
        """Its messages, when they are made."""
        self.is_checked = True
        """Whether its sequence was checked; not before the writer knows the queue's producers."""
        self.is_behind = False
        """Whether it has come before one that was refused."""
        self.place = SequencePlace.NEXT

    def fail(self, error: RequestError) -> None:
        """End it with an error, unless it has an outcome."""
        if not self.outcome.done():
            self.outcome.set_exception(error)

    def confirm(self, offset: int) -> None:
        """End it with its offset, unless it has an outcome."""
        if not self.outcome.done():
            self.outcome.set_result(offset)

    def follow(self, known: asyncio.Future[int]) -> None:
        """End it as another batch, of which it is a repeat."""

        def end(done: asyncio.Future[int]) -> None:
            error = done.exception()
            if self.outcome.done():
                return
            if error is not None:
                self.outcome.set_exception(error)
            else:
                self.outcome.set_result(done.result())

        known.add_done_callback(end)


class WaitingRequest:
    """Batches that are sent together."""

    __slots__ = ("batches", "born_ms", "count", "is_alone", "size", "term")

    def __init__(self, born_ms: int, term: int = 0) -> None:
        self.term = term
        """The writer's term in which it left the line."""
        self.batches: list[WaitingBatch] = []
        self.is_alone = False
        """Whether it is for one batch only."""
        self.born_ms = born_ms
        self.count = 0
        self.size = 0

    def has_room(self, count: int, size: int) -> bool:
        """Whether that much more may be sent with it."""
        if self.is_alone:
            return False
        return self.count + count <= JOINED_COUNT_MAX and self.size + size <= JOINED_BYTES_MAX

    @property
    def is_ready(self) -> bool:
        """Whether the messages of all its batches are made."""
        return all(batch.sent is not None for batch in self.batches)

    @property
    def is_checked(self) -> bool:
        """Whether the sequences of all its batches were checked."""
        return all(batch.is_checked for batch in self.batches)


class Line:
    """The requests that wait, in order, and the bytes of those that have no outcome yet."""

    def __init__(self) -> None:
        self._requests: deque[WaitingRequest] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._requests)

    def __iter__(self) -> Iterator[WaitingRequest]:
        return iter(self._requests)

    def has_room(self, size: int) -> bool:
        """Whether a batch may wait."""
        return self._bytes + size <= LINE_BYTES_MAX

    def place(
        self, header: BatchHeader, size: int, now_ms: int, *, is_alone: bool = False
    ) -> WaitingRequest:
        """The request that a batch joins: the last one that waits, or a new one."""
        last = self._requests[-1] if self._requests else None
        if last is not None and not is_alone and last.has_room(header.record_count, size):
            return last
        request = WaitingRequest(header.base_timestamp if header.base_timestamp > 0 else now_ms)
        request.is_alone = is_alone
        return request

    def join(self, request: WaitingRequest, batch: WaitingBatch, size: int) -> None:
        """Put a batch into the request that `place` found."""
        batch.size = size
        request.batches.append(batch)
        request.count += batch.header.record_count
        request.size += size
        self._bytes += size
        if not self._requests or self._requests[-1] is not request:
            self._requests.append(request)

    def leave(self, request: WaitingRequest, batch: WaitingBatch) -> None:
        """Take one batch out of a request."""
        request.batches.remove(batch)
        request.count -= batch.header.record_count
        request.size -= batch.size
        self._bytes -= batch.size

    def end(self, request: WaitingRequest) -> list[WaitingBatch]:
        """Take all batches out of a request that has left the line."""
        batches = list(request.batches)
        request.batches.clear()
        self._bytes -= sum(batch.size for batch in batches)
        return batches

    def first(self) -> WaitingRequest | None:
        """The next request that has any batches."""
        while self._requests and not self._requests[0].batches:
            self._requests.popleft()
        return self._requests[0] if self._requests else None

    def pop(self) -> WaitingRequest:
        """Take the next request out of the line."""
        return self._requests.popleft()

    def clear(self) -> list[WaitingBatch]:
        """Take everything out of the line."""
        batches = [batch for request in self._requests for batch in self.end(request)]
        self._requests.clear()
        return batches
