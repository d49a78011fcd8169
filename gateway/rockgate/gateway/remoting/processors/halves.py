"""The end of half messages: 37.

Behaviour
- 8 commits, 12 rolls back; 0 says nothing yet, and leaves it to a check. Anything else is ignored.
- A half message that was decided before stays as it is, and that is no error.
- Whether it is the producer's own word or its answer to a check makes no difference.
- Who waits for an answer is told of a commit when it is as safe as a send to that topic would be.

Departs from RocketMQ
- The first decision wins; the commit-log offset of the request is not used, and the message is not
  looked for by it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.durability import Durability
from rockgate.gateway.remoting.caller import Caller
from rockgate.gateway.remoting.dispatch import Reply
from rockgate.gateway.remoting.halves import Halves
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader

COMMIT: Final = 8
ROLL_BACK: Final = 12


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
        is_sync = False
        if header.commit_or_rollback == COMMIT:
            committed = self._halves.commit(offset, group)
            is_sync = committed is not None and committed.is_sync
        elif header.commit_or_rollback == ROLL_BACK:
            self._halves.roll_back(offset, group)
        if command.flag & ONEWAY_FLAG:
            return []
        return self._durability.after_changes(Command(ResponseCode.SUCCESS, {}), is_sync=is_sync)
