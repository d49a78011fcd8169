"""Waits until a broker shows everything that it was sent before.

A broker that was stopped (SIGSTOP, a long collection, a suspended machine) has requests in its
sockets, also of gateways that are gone, and may answer a question of ours before it reads them. So
it has to be seen running for a while first:

    asked          the broker's runtime information (28), three times, a tenth of a second apart
    slow answer    it did not run meanwhile, perhaps: this is the first one again
    three quick    what was in its sockets is stored or refused: it refuses requests after 200 ms
    then           wait until its queues and its index have what its log had: both lag behind

One such wait serves all queues of a broker whose terms began before it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.errors import MalformedRequest

PROBES: Final = 3
STEP_S: Final = 0.1
QUICK_S: Final = 0.5
"""An answer that takes longer may have waited in a stopped broker."""
BEHIND_S: Final = 0.02
"""Between questions whether the index has caught up."""
SLOW_S_MAX: Final = 3.0
"""A broker that answers slowly for this long is slow, not stopped."""
ASK_S: Final = 4.0
SIZE_MAX: Final = 4 << 20

log = logging.getLogger(__name__)


class BrokerFence:
    """All brokers of a cluster."""

    def __init__(self, brokers: Brokers, clock: Clock) -> None:
        self._brokers = brokers
        self._clock = clock
        self._begun: dict[str, float] = {}
        """When the last wait that has ended began, by broker."""
        self._running: dict[str, tuple[float, asyncio.Task[None]]] = {}

    async def caught_up(self, broker: str, since: float) -> None:
        """Wait until a broker shows all that it was sent before a time of the loop.

        BrokerError if it does not answer.
        """
        while self._begun.get(broker, float("-inf")) < since:
            running = self._running.get(broker)
            if running is not None:
                # It may have begun too early for this caller, who then waits for the next.
                await asyncio.shield(running[1])
                continue
            began = self._clock.time()
            task = asyncio.get_running_loop().create_task(self._wait(broker, began))
            self._running[broker] = (began, task)
            task.add_done_callback(lambda _: self._running.pop(broker, None))

    async def _wait(self, broker: str, began: float) -> None:
        quick = 0
        end = 0
        while quick < PROBES:
            asked_at = self._clock.time()
            end, _ = await self._progress(broker)
            took_s = self._clock.time() - asked_at
            is_patient = asked_at - began < SLOW_S_MAX
            quick = quick + 1 if took_s <= QUICK_S or not is_patient else 1
            if quick < PROBES:
                await self._pause(STEP_S)
        visible_end = -1
        while visible_end < end:
            log_end, visible_end = await self._progress(broker)
            # A broker that was killed may have lost what it had not flushed.
            end = min(end, log_end)
            if visible_end < end:
                await self._pause(BEHIND_S)
        self._begun[broker] = began

    async def _progress(self, broker: str) -> tuple[int, int]:
        """The end of a broker's log, and up to where its queues and its index have it."""
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        answer = checked(await self._brokers.ask(broker, code, timeout_s=ASK_S))
        try:
            table = javajson.decode(answer.body, KeyValues, "28", size_max=SIZE_MAX).table
            end = int(table.get("commitLogMaxOffset", "0"))
            return end, end - max(0, int(table.get("dispatchBehindBytes", "0")))
        except (MalformedRequest, ValueError) as wrong:
            raise BrokerLost(f"cannot decode the runtime information: {wrong}") from None

    async def _pause(self, seconds: float) -> None:
        over = asyncio.Event()
        self._clock.call_later(seconds, over.set)
        await over.wait()
