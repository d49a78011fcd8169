"""Half messages: 37 ends them, 323 has one checked again.

Behaviour
- 8 commits, 12 rolls back; 0 says nothing yet, and leaves it to a check. Anything else is ignored.
- A half message that was decided before stays as it is. The same decision again is SUCCESS; the
  opposite is answered with what was decided: TRANSACTION_SHOULD_COMMIT (200) for one that was
  committed, TRANSACTION_SHOULD_ROLLBACK (201) for one that was rolled back. What was given up, what
  never existed and what was decided too long ago is TRANSACTION_STATE_UNKNOW (202).
- Whether the producer decides on its own or in answer to a check makes no difference.
- A commit is acknowledged when it is as durable as a send to that topic would be.
- One-way requests, as Java's client sends, are carried out after the answers of this turn of the
  loop: usually the producer's next send is in the same read, and it waits for its answer.
- 323 takes a message that was discarded after its checks, by its offset message id, and stores it
  as a half message again, which is checked from the start. One that is undecided stays as it is.

Departs from RocketMQ
- The first decision wins; the commit-log offset of the request is not used, and the message is not
  looked for by it. RocketMQ delivers what is committed after a rollback, and answers SUCCESS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply, failed
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader, ResumeCheckHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.protocol.remoting.system_topics import CHECKED_OUT_TOPIC
from rockgate.store.api.half import MESSAGES, Outcome

WAITING_MAX: Final = 1_000
"""Maximum number of deferred one-way requests; beyond it each new one first runs the oldest."""
TURN_SECONDS: Final = 0.005
"""How long deferred requests occupy the loop before other requests run."""
COMMIT: Final = 8
ROLL_BACK: Final = 12
_ASKED: Final = {COMMIT: Outcome.COMMITTED, ROLL_BACK: Outcome.ROLLED_BACK}
_LATE: Final = {
    Outcome.COMMITTED: (ResponseCode.TRANSACTION_SHOULD_COMMIT, "has already been committed"),
    Outcome.ROLLED_BACK: (ResponseCode.TRANSACTION_SHOULD_ROLLBACK, "has already been rolled back"),
    Outcome.GIVEN_UP: (
        ResponseCode.TRANSACTION_STATE_UNKNOW,
        f"was discarded after its checks; it is in {CHECKED_OUT_TOPIC}",
    ),
    None: (ResponseCode.TRANSACTION_STATE_UNKNOW, "does not exist"),
}
"""The response to a decision that contradicts an earlier one."""


class HalfRequests:
    """Ends half messages."""

    def __init__(
        self,
        *,
        halves: Halves,
        lookup: MessageLookup,
        durability: Durability,
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`soon` runs work in the next turn of the loop."""
        self._halves = halves
        self._lookup = lookup
        self._durability = durability
        self._soon = soon
        self._waiting: deque[tuple[EndTransactionHeader, Caller]] = deque()
        """One-way requests without their bodies, which the connection no longer accounts for."""

    def end(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """37: commit, roll back, or leave undecided."""
        header = _header(command)
        if command.flag & ONEWAY_FLAG:
            return self._wait(header, caller)
        if self._waiting:
            self._end_earlier(header.tran_state_table_offset)
        decision = _ASKED.get(header.commit_or_rollback)
        is_sync, is_late = self._decide(header, decision)
        answer = Command(ResponseCode.SUCCESS, {})
        if is_late and decision is not None:
            answer = self._late(header.tran_state_table_offset, decision)
        return self._durability.after_changes(answer, is_sync=is_sync)

    def _decide(self, header: EndTransactionHeader, decision: Outcome | None) -> tuple[bool, bool]:
        """Carry out a decision;

        returns whether it must be on disk, and whether it came too late.
        """
        offset, group = header.tran_state_table_offset, header.producer_group
        if decision is Outcome.COMMITTED:
            committed = self._halves.commit(offset, group)
            return committed is not None and committed.is_sync, committed is None
        if decision is Outcome.ROLLED_BACK:
            return False, not self._halves.roll_back(offset, group)
        return False, False

    # One-way requests

    def finish(self) -> None:
        """Carry out all pending requests: the server stops."""
        while self._waiting:
            self._end_next()

    def _wait(self, header: EndTransactionHeader, caller: Caller) -> Reply:
        waiting = self._waiting
        waiting.append((header, caller))
        if len(waiting) == 1:
            self._soon(self._end_waiting)
        elif len(waiting) > WAITING_MAX:
            self._end_next()
        return []

    def _end_waiting(self) -> None:
        turn = TimeSlice(TURN_SECONDS)
        while self._waiting:
            self._end_next()
            if self._waiting and turn.is_over():
                self._soon(self._end_waiting)
                return

    def _end_earlier(self, offset: int) -> None:
        """Carry out pending one-way requests for this message: the first decision wins."""
        for each in [one for one in self._waiting if one[0].tran_state_table_offset == offset]:
            self._waiting.remove(each)
            self._end(*each)

    def _end_next(self) -> None:
        self._end(*self._waiting.popleft())

    def _end(self, header: EndTransactionHeader, caller: Caller) -> None:
        try:
            self._decide(header, _ASKED.get(header.commit_or_rollback))
        except Exception as error:  # noqa: BLE001 # decided by type in failed()
            failed(Command(RequestCode.END_TRANSACTION), caller, error)

    # Resumed

    def resume(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """323: check a half message again."""
        id_ = headers.read(command, ResumeCheckHeader).msg_id
        _, _, place = parse_offset_message_id(id_)
        found = self._lookup.message(place)
        topic = None if found is None else found.queue.topic
        if found is not None and topic == MESSAGES and self._halves.undecided.find(found.offset):
            return Command(ResponseCode.SUCCESS)
        if found is None or topic != CHECKED_OUT_TOPIC.encode():
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"Message {id_} is neither undecided nor in {CHECKED_OUT_TOPIC}.",
            )
        self._halves.resume(found.message)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def _late(self, offset: int, asked: Outcome) -> Command:
        """The response to a decision that follows another."""
        outcome = self._halves.undecided.outcome(offset)
        if outcome is asked:
            return Command(ResponseCode.SUCCESS, {})
        code, what = _LATE[outcome]
        return Command(code, remark=f"Half message {offset} {what}.")


def _header(command: Command) -> EndTransactionHeader:
    header: EndTransactionHeader = command.header or headers.read(command, EndTransactionHeader)
    return header
