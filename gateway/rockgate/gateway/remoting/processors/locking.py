"""Locks for ordered reading: 41 takes and renews them, 42 gives them up."""

from __future__ import annotations

from typing import Final

from rockgate.gateway.remoting.caller import Caller
from rockgate.gateway.remoting.dispatch import Reply
from rockgate.gateway.remoting.locks import Locks
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.clock import Clock

LOCK_BYTES_MAX: Final = 1 << 20
"""Of one request's queues: some ten thousand."""


class LockRequests:
    """Answers 41 and 42."""

    def __init__(self, locks: Locks, clock: Clock) -> None:
        self._locks = locks
        self._clock = clock

    def lock(self, command: Command, caller: Caller) -> Reply:
        """41: the queues that are the client's now."""
        asked = javajson.decode(command.body, LockBody, "LOCK_BATCH_MQ", size_max=LOCK_BYTES_MAX)
        mine = self._locks.lock(
            asked.consumer_group, asked.client_id, asked.mq_set, self._clock.monotonic_ms()
        )
        return Command(ResponseCode.SUCCESS, body=javajson.encode(LockedBody(lock_ok_mq_set=mine)))

    def unlock(self, command: Command, caller: Caller) -> Reply:
        """42: the client gives queues up."""
        asked = javajson.decode(command.body, LockBody, "UNLOCK_BATCH_MQ", size_max=LOCK_BYTES_MAX)
        self._locks.unlock(asked.consumer_group, asked.client_id, asked.mq_set)
        return Command(ResponseCode.SUCCESS)
