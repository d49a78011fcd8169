"""Batches that the master has stored, but not as durably as its settings want.

With acks=all they are NOT_ENOUGH_REPLICAS_AFTER_APPEND, and so are their repeats until it is known
that they are: a later request to the queue was confirmed as a whole, or the broker says that a
slave has all that its log had since (907; 4.9 has no such request, and it says nothing of a disk).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple

from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.queues.sequences import Sequences
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.running import ReplicaStatus
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.errors import MalformedRequest

BATCHES_MAX: Final = 10_000
"""Batches of one queue; beyond that repeats of the oldest stay refused."""
SIZE_MAX: Final = 1 << 20
ASK_S: Final = 4.0

log = logging.getLogger(__name__)


class _Late(NamedTuple):
    header: BatchHeader
    offset: int
    is_flushed: bool


class LateBatches:
    """Those of one queue."""

    def __init__(self, broker: str, brokers: Brokers, sequences: Sequences) -> None:
        self._broker = broker
        self._brokers = brokers
        self._sequences = sequences
        self._batches: list[_Late] = []
        self._end: int | None = None
        """Where the broker's log ended after the last of them; None if it was not asked since."""
        self._asking: asyncio.Task[None] | None = None

    def add(self, header: BatchHeader, offset: int, *, is_flushed: bool) -> None:
        """A batch was stored once, and no slave has it or it is not on the disk."""
        if header.producer_id >= 0 and len(self._batches) < BATCHES_MAX:
            self._batches.append(_Late(header, offset, is_flushed))
            self._end = None

    def whole(self) -> None:
        """Everything that was stored until now is as durable as it should be."""
        self._correct(self._batches)
        self._batches = []

    def asked_again(self, header: BatchHeader) -> None:
        """A batch was sent again: if it is one of these, ask the broker about its slaves."""
        is_mine = any(
            (late.header.producer_id, late.header.base_sequence)
            == (header.producer_id, header.base_sequence)
            for late in self._batches
        )
        if is_mine and self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)

    def forget(self) -> None:
        """A term has ended."""
        self._batches.clear()

    async def _ask(self) -> None:
        code = RequestCode.GET_BROKER_HA_STATUS
        answer = checked(await self._brokers.ask(self._broker, code, timeout_s=ASK_S))
        status = javajson.decode(answer.body, ReplicaStatus, "907", size_max=SIZE_MAX)
        if self._end is None:
            self._end = status.master_commit_log_max_offset
        if any(each.slave_ack_offset >= self._end for each in status.ha_connection_info):
            self._correct([late for late in self._batches if late.is_flushed])
            self._batches = [late for late in self._batches if not late.is_flushed]

    def _correct(self, batches: list[_Late]) -> None:
        for late in batches:
            outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            outcome.set_result(late.offset)
            self._sequences.correct(late.header, outcome)

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, BrokerError | MalformedRequest):
            log.error("asking broker %s for its slaves failed", self._broker, exc_info=error)
