"""Queue locks for orderly consumption: 41 lock and renew, 42 unlock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Final

from rockgate.gateway.remoting.groups.locks import Locks
from rockgate.gateway.remoting.server import names
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import LockBody, MessageQueue
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.api.clock import Clock

LOCK_BYTES_MAX: Final = 512 << 10
"""Maximum size of a request: some seven thousand queues."""
QUEUES_AT_ONCE: Final = 500


class LockRequests:
    """Processors of lock requests."""

    def __init__(self, locks: Locks, clock: Clock) -> None:
        self._locks = locks
        self._clock = clock

    def lock(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """41: lock queues; returns those that the client holds."""
        asked = javajson.decode(command.body, LockBody, "LOCK_BATCH_MQ", size_max=LOCK_BYTES_MAX)
        _check_names(asked)
        return self._lock(asked)

    async def _lock(self, asked: LockBody) -> Reply:
        now_ms = self._clock.monotonic_ms()
        rows: list[bytes] = []
        for queues in _in_parts(asked.mq_set):
            mine = self._locks.lock(asked.consumer_group, asked.client_id, queues, now_ms)
            rows += map(javajson.encode, mine)
            await asyncio.sleep(0)
        return Command(ResponseCode.SUCCESS, body=b'{"lockOKMQSet":[%b]}' % b",".join(rows))

    def unlock(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """42: unlock queues."""
        asked = javajson.decode(command.body, LockBody, "UNLOCK_BATCH_MQ", size_max=LOCK_BYTES_MAX)
        _check_names(asked)
        return self._unlock(asked)

    async def _unlock(self, asked: LockBody) -> Reply:
        for queues in _in_parts(asked.mq_set):
            self._locks.unlock(asked.consumer_group, asked.client_id, queues)
            await asyncio.sleep(0)
        return Command(ResponseCode.SUCCESS)


def _in_parts(queues: list[MessageQueue]) -> Iterator[list[MessageQueue]]:
    return (queues[at : at + QUEUES_AT_ONCE] for at in range(0, len(queues), QUEUES_AT_ONCE))


def _check_names(asked: LockBody) -> None:
    names.check_group(asked.consumer_group)
    names.check_client_id(asked.client_id)
    for queue in asked.mq_set:
        names.check_topic(queue.topic)
        names.check_topic(queue.broker_name)
