"""Writes to one queue: one request in flight, with whatever has waited joined into the next.

RocketMQ lets requests of one connection overtake each other, so two in flight would break the order
of a partition. One at a time does it if batches are joined. Offsets of a request are contiguous,
and each batch gets its part of them. docs/internals/rocketmq-cluster.md has the table of outcomes.

An answer that does not come keeps its place: clients have to send again, and what they repeat
has the outcome that may still come. Only when it is uncertain for good, or a new term begins, are
the producers forgotten; then the queue's tail and the index of keys say what is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.cluster.brokers import QueueName, SendingBrokers, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.leadership import SERVED, PartitionLease
from rockgate.gateway.rocketmq.queues import messages
from rockgate.gateway.rocketmq.queues.delayed import DelayedSend
from rockgate.gateway.rocketmq.queues.history import History
from rockgate.gateway.rocketmq.queues.line import Line, WaitingBatch, WaitingRequest
from rockgate.gateway.rocketmq.queues.outcomes import (
    BUSY,
    BUSY_S,
    BUSY_S_MAX,
    ILLEGAL,
    STORED,
    STORED_ONCE,
)
from rockgate.gateway.rocketmq.queues.refused import RefusedBatches, too_early
from rockgate.gateway.rocketmq.queues.replicated import LateBatches
from rockgate.gateway.rocketmq.queues.sequences import SequencePlace, Sequences
from rockgate.gateway.transcode.remote.sent_records import SentRecords
from rockgate.protocol.kafka.errors import BatchTooLarge, ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.kafka.records.bounds import LIGHT, Bounds, is_heavy
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.headers.send import SentHeader

log = logging.getLogger(__name__)


class QueueWriter:
    """The line of one queue. `confirmed` is the offset after what this gateway has stored."""

    def __init__(
        self,
        queue: QueueName,
        brokers: SendingBrokers,
        threads: messages.OpeningThreads,
        history: History,
        *,
        lease: Callable[[], PartitionLease] = lambda: SERVED,
        on_confirmed: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.queue = queue
        self._brokers = brokers
        self._threads = threads
        self._history = history
        self._lease = lease
        self._on_confirmed = on_confirmed
        self._sequences = Sequences()
        self._refused = RefusedBatches()
        self._late = LateBatches(queue.broker, brokers, self._sequences)
        self._delayed = DelayedSend(queue, brokers)
        self._line = Line()
        self._in_flight: WaitingRequest | None = None
        self._working: asyncio.Task[None] | None = None
        """What the line waits for: a request, or the queue's history."""
        self._opening: set[asyncio.Task[None]] = set()
        self._is_known = False
        """Whether the queue's history was read since producers were last forgotten."""
        self._term = 0
        """Grows whenever producers are forgotten."""
        self._doubted_at = float("-inf")
        self.confirmed = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in its line or under way."""
        return not self._line and self._working is None

    def append(
        self,
        body: bytes,
        header: BatchHeader,
        *,
        is_all: bool,
        deadline: float,
        now_ms: int,
        form: messages.BatchForm = messages.PLAIN,
    ) -> asyncio.Future[int]:
        """Take a place in the line, and return the base offset to come, or RequestError.

        `deadline` is a time of the loop. RequestError or MalformedBatch at once if the batch is
        refused; it then has no place.
        """
        loop = asyncio.get_running_loop()
        if not self._lease().is_served:
            reason = f"Queue {self.queue.queue_id} of {self.queue.broker} has another leader."
            raise self.refuse(header, ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
        outcome: asyncio.Future[int] = loop.create_future()
        outcome.add_done_callback(partial(self._ended, header))
        batch = WaitingBatch(header, outcome, is_all=is_all, deadline=deadline)
        if header.producer_id >= 0:
            batch.is_checked = self._is_known
            batch.is_behind = self._refused.arrived(header, loop.time())
            if self._is_known:
                found = self._sequences.check(header, is_behind=batch.is_behind)
                if not isinstance(found, SequencePlace):
                    self._late.asked_again(header)
                    return found
                batch.place = found
        if not self._line.has_room(len(body)):
            reason = "Too many batches are waiting."
            raise self.refuse(header, ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
        request = self._line.place(header, len(body), now_ms, is_alone=form.is_alone)
        make = partial(messages.make_messages, body, header, request.born_ms, now_ms, form)
        heavy = not form.is_whole and is_heavy(body)
        if not heavy:
            try:
                batch.sent = make(LIGHT)
            except BatchTooLarge:
                # It has declared less than it is; a thread finds out by how much.
                heavy = True
        self._line.join(request, batch, len(body))
        self._assume(batch)
        if heavy:
            self._start(self._open(request, batch, make))
        self._pump()
        return outcome

    def refuse(self, header: BatchHeader, code: ErrorCode, reason: str) -> RequestError:
        """The error of a batch that has no place, and that comes again before those behind it."""
        error = RequestError(code, reason)
        self._refused.refuse(header, error, asyncio.get_running_loop().time())
        return error

    def lose(self, reason: str) -> None:
        """A term has ended: drop waiting batches."""
        self._drop(reason)
        if self._in_flight is not None:
            for batch in self._in_flight.batches:
                batch.fail(RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))

    async def close(self) -> None:
        """Drop pending batches, and wait until the request in flight is answered."""
        self._drop("The gateway is stopping.")
        tasks = [*self._opening, *([self._working] if self._working else [])]
        await asyncio.gather(*tasks, return_exceptions=True)

    # The line

    def _assume(self, batch: WaitingBatch) -> None:
        if (
            batch.header.producer_id >= 0
            and batch.is_checked
            and batch.place is not SequencePlace.GAP
        ):
            self._sequences.assume(batch.header, batch.outcome)

    async def _open(
        self, request: WaitingRequest, batch: WaitingBatch, make: Callable[[Bounds], SentRecords]
    ) -> None:
        """Have a thread open a batch that takes long; what is behind it waits."""
        work = partial(make, self._threads.bounds)
        try:
            batch.sent = await self._threads.run(work)
        except MalformedBatch as damage:
            if batch in request.batches:
                self._leave(request, batch, RequestError(damage.code, str(damage)))
            if batch.header.producer_id >= 0:
                self._sequences.drop(batch.header)
        self._pump()

    def _leave(self, request: WaitingRequest, batch: WaitingBatch, error: RequestError) -> None:
        """Take one batch out of a request that was not stored."""
        self._line.leave(request, batch)
        batch.fail(error)

    def _drop(self, reason: str) -> None:
        """Forget what was assumed: clients send all that waits again, in order."""
        self._sequences.forget()
        self._late.forget()
        self._is_known = False
        self._term += 1
        self._doubted_at = asyncio.get_running_loop().time()
        for batch in self._line.clear():
            batch.fail(RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))

    # Sending

    def _pump(self) -> None:
        """Send the next request, if none is under way and it is ready."""
        request = self._line.first()
        if self._working is not None or request is None:
            return
        work: Coroutine[Any, Any, None] | None = None
        if not request.is_checked:
            work = self._read_history()
        elif request.is_ready:
            self._in_flight = self._line.pop()
            request.term = self._term
            work = self._send_checked(request)
        if work is not None:
            self._working = asyncio.get_running_loop().create_task(work)
            self._working.add_done_callback(self._worked)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working = self._in_flight = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("writing to %s failed", self.queue, exc_info=error)
            self._drop("The gateway failed.")
        self._pump()

    async def _send_checked(self, request: WaitingRequest) -> None:
        """Send what of a request is not stored yet."""
        try:
            await self._look_up(request)
        except BrokerError as failed:
            self._lose(request, f"Its producers cannot be looked up: {failed}.")
        else:
            batch = next(iter(request.batches), None)
            if batch is not None and batch.sent is not None and batch.sent.alone:
                await self._send_delayed(request, batch, batch.sent)
            else:
                await self._send(request)

    async def _send_delayed(
        self, request: WaitingRequest, batch: WaitingBatch, sent: SentRecords
    ) -> None:
        """Send the one batch of a request, of which some records are delayed."""
        if request.term != self._term or not self._lease().is_served:
            self._lose(request, "Another gateway leads this partition now.")
            return
        try:
            offset = await self._delayed.send(sent, request.born_ms, batch.deadline)
        except RequestError as refused:
            self._leave(request, batch, refused)
            self._drop(refused.reason)
        except BrokerError as lost:
            self._lose(request, str(lost))
        else:
            self._line.end(request)
            batch.confirm(offset)
            self.confirmed = max(self.confirmed, offset + 1)
            self._on_confirmed(self.confirmed)

    async def _send(self, request: WaitingRequest) -> None:
        """Send a request until a broker has answered it; every batch gets its outcome."""
        pause_s = BUSY_S
        try:
            while request.batches:
                if request.term != self._term or not self._lease().is_served:
                    self._lose(request, "Another gateway leads this partition now.")
                    return
                answer = await messages.send_messages(self._brokers, self.queue, request)
                code = answer.code
                if code in STORED or code in STORED_ONCE:
                    self._confirm(request, read(answer, SentHeader).queue_offset, code)
                    return
                if code in ILLEGAL:
                    await self._send_illegal(request, answer.remark or "")
                    return
                if code not in BUSY:
                    self._lose(request, f"Broker {self.queue.broker} answered {code}.")
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, BUSY_S_MAX)
                self._expire(request)
        except BrokerError as lost:
            self._lose(request, str(lost))
        except BaseException:
            self._lose(request, "The gateway failed.")
            raise

    def _confirm(self, request: WaitingRequest, offset: int, code: int) -> None:
        is_whole = code in STORED
        if is_whole:
            self._late.whole()
        for batch in self._line.end(request):
            if is_whole or not batch.is_all:
                batch.confirm(offset)
            else:
                reason = "Stored by the master, but not as durably as acks=all asks for."
                batch.fail(RequestError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, reason))
                is_flushed = code != ResponseCode.FLUSH_DISK_TIMEOUT
                self._late.add(batch.header, offset, is_flushed=is_flushed)
            offset += batch.header.record_count
        self.confirmed = max(self.confirmed, offset)
        self._on_confirmed(self.confirmed)

    async def _send_illegal(self, request: WaitingRequest, remark: str) -> None:
        """Refuse the one batch of a request; of several, find the one that is meant."""
        if len(request.batches) == 1:
            [batch] = request.batches
            self._leave(request, batch, RequestError(ErrorCode.INVALID_RECORD, remark))
            self._sequences.drop(batch.header)
            return
        for batch in list(request.batches):
            alone = WaitingRequest(request.born_ms, request.term)
            alone.batches.append(batch)
            request.batches.remove(batch)
            if batch.outcome.done():
                self._line.end(alone)
            else:
                await self._send(alone)

    def _expire(self, request: WaitingRequest) -> None:
        """End what has waited too long; what is behind it would leave a gap in sequences."""
        now = asyncio.get_running_loop().time()
        late = [batch for batch in request.batches if batch.deadline <= now]
        for batch in late:
            reason = f"Broker {self.queue.broker} is busy."
            self._leave(request, batch, RequestError(ErrorCode.REQUEST_TIMED_OUT, reason))
        if late:
            reason = "A batch before this one timed out."
            for batch in list(request.batches):
                self._leave(request, batch, RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))
            self._drop(reason)

    def _lose(self, request: WaitingRequest, reason: str) -> None:
        """It is unknown whether a request was stored."""
        log.warning("write to %s is uncertain: %s", self.queue, reason)
        for batch in self._line.end(request):
            batch.fail(RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))
        self._drop(reason)

    # What is stored already

    async def _read_history(self) -> None:
        """Learn the producers of the queue's tail, and check what has waited for that."""
        term = self._term
        try:
            marks = await self._history.tail(max(self._lease().since, self._doubted_at))
        except BrokerError as failed:
            log.warning("the tail of %s cannot be read: %s", self.queue, failed)
            self._drop("The queue's last batches cannot be read.")
            return
        if term != self._term:
            return
        self._sequences.restore(marks)
        self._is_known = True
        for request in self._line:
            for batch in [each for each in request.batches if not each.is_checked]:
                self._check(request, batch)

    def _check(self, request: WaitingRequest, batch: WaitingBatch) -> None:
        batch.is_checked = True
        try:
            found = self._sequences.check(batch.header, is_behind=batch.is_behind)
        except RequestError as error:
            self._leave(request, batch, error)
            return
        if isinstance(found, SequencePlace):
            batch.place = found
            self._assume(batch)
        else:
            self._line.leave(request, batch)
            batch.follow(found)

    async def _look_up(self, request: WaitingRequest) -> None:
        """Take out what is stored already; BrokerError if that cannot be known."""
        for batch in list(request.batches):
            header, place = batch.header, batch.place
            if place is SequencePlace.NEXT or (
                place is SequencePlace.DOUBTED and self._sequences.is_trusted(header)
            ):
                continue
            found = await self._history.find(header)
            if batch.outcome.done():
                # The term has ended meanwhile.
                continue
            if found is not None:
                self._line.leave(request, batch)
                batch.confirm(found)
            elif place is SequencePlace.GAP:
                early = batch.is_behind
                error = too_early(header) if early else self._sequences.out_of_order(header)
                self._leave(request, batch, error)
            else:
                self._sequences.trust(header)

    def _ended(self, header: BatchHeader, outcome: asyncio.Future[int]) -> None:
        """Remember what was refused; a client that went away does not ask for its outcome."""
        if not outcome.cancelled():
            error = outcome.exception()
            self._refused.refuse(header, error, outcome.get_loop().time())
