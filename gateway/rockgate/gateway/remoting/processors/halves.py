"""The end of half messages: 37.

Behaviour
- 8 commits, 12 rolls back; 0 says nothing yet, and leaves it to a check. Anything else is ignored.
- A half message that was decided before stays as it is. The same decision again is SUCCESS; the
  opposite is answered with what was decided: TRANSACTION_SHOULD_COMMIT (200) for one that was
  committed, TRANSACTION_SHOULD_ROLLBACK (201) for one that was rolled back. What was given up, what
  never existed and what was decided too long ago is TRANSACTION_STATE_UNKNOW (202).
- Whether the producer decides on its own or in answer to a check makes no difference.
- A commit is acknowledged when it is as durable as a send to that topic would be.

Departs from RocketMQ
- The first decision wins; the commit-log offset of the request is not used, and the message is not
  looked for by it. RocketMQ delivers what is committed after a rollback, and answers SUCCESS.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.protocol.remoting.system_topics import CHECKED_OUT_TOPIC
from rockgate.store.api.half import Outcome

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
"""The answer to a decision that contradicts an earlier one."""


class HalfRequests:
    """Ends half messages."""

    def __init__(self, *, halves: Halves, durability: Durability) -> None:
        self._halves = halves
        self._durability = durability

    def end(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """37: commit, roll back, or neither yet."""
        header = command.header
        if header is None:
            header = headers.read(command, EndTransactionHeader)
        offset, group = header.tran_state_table_offset, header.producer_group
        is_sync, is_late = False, False
        if header.commit_or_rollback == COMMIT:
            committed = self._halves.commit(offset, group)
            is_sync = committed is not None and committed.is_sync
            is_late = committed is None
        elif header.commit_or_rollback == ROLL_BACK:
            is_late = not self._halves.roll_back(offset, group)
        if command.flag & ONEWAY_FLAG:
            return []
        answer = Command(ResponseCode.SUCCESS, {})
        if is_late:
            answer = self._late(offset, _ASKED[header.commit_or_rollback])
        return self._durability.after_changes(answer, is_sync=is_sync)

    def _late(self, offset: int, asked: Outcome) -> Command:
        """The answer to a decision that comes after another."""
        outcome = self._halves.undecided.outcome(offset)
        if outcome is asked:
            return Command(ResponseCode.SUCCESS, {})
        code, what = _LATE[outcome]
        return Command(code, remark=f"Half message {offset} {what}.")
