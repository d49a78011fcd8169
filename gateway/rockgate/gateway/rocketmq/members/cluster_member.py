"""One gateway among others: everything of this package that runs, put together.

member = ClusterMember(me, cluster, clock)
await member.join(…)        members at every master, slots, and only then partitions
member.refresh()            every few seconds: new masters, and what failed before
await member.leave()        hand over at once
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.locks import BrokerLocks
from rockgate.gateway.rocketmq.members.membership import Masters, Membership
from rockgate.gateway.rocketmq.members.roster import Roster, RosterValues
from rockgate.gateway.rocketmq.members.slots import Slots
from rockgate.gateway.rocketmq.members.tables import NameServers, TableLocks, slot_table
from rockgate.gateway.rocketmq.members.terms import WAIT_S, LeaderTerms

JOIN_S: Final = 5.0

log = logging.getLogger(__name__)


class MemberCluster(Masters, NameServers, RosterValues, Protocol):
    """What a gateway asks of brokers and name servers to be one among others."""


class ClusterMember:
    """This gateway's membership, terms, slots and locks."""

    def __init__(
        self,
        me: Gateway,
        cluster: MemberCluster,
        clock: Clock,
        *,
        fixed: Sequence[str] = (),
    ) -> None:
        """`fixed` are the brokers of `rocketmq.brokers`."""
        self.me = me
        self._cluster = cluster
        self._clock = clock
        self._fixed = tuple(fixed)
        self.terms = LeaderTerms(me.node_id, clock, on_stop=self._stopped)
        self.roster = Roster(me, cluster, self.terms, clock)
        locks = BrokerLocks(me, cluster, self.terms, self.roster, clock)
        self.slots = Slots(self.terms, locks, clock)
        self.table_locks = TableLocks(locks, self.slots, clock)
        self.membership = Membership(me, cluster, self.terms, clock)
        self._finding: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Join at the masters that are there, and wait until what is led here may be served."""
        await self.roster.enter()
        await self.membership.join(JOIN_S)
        await self._find_slots()
        over = asyncio.Event()
        self._clock.call_later(WAIT_S, over.set)
        await over.wait()

    def refresh(self) -> None:
        """Join at new masters, and try again what failed."""
        self.membership.refresh()
        self.slots.refresh()
        if not self.slots.is_known and (self._finding is None or self._finding.done()):
            self._finding = asyncio.get_running_loop().create_task(self._find_slots())
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self.roster.look())

    async def leave(self) -> None:
        """Serve nothing more, free all locks and leave the group: others take over at once."""
        for task in (self._finding, self._looking):
            if task is not None:
                task.cancel()
        self.terms.close()
        are_free = await self.slots.close()
        await self.membership.leave()
        if are_free:
            await self.roster.leave()

    # Private

    def _stopped(self) -> None:
        self.membership.stopped()

    async def _find_slots(self) -> None:
        try:
            table = await slot_table(self._cluster, self.table_locks, self._fixed)
        except BrokerError as failed:
            log.warning("the coordinator slots are not known: %s", failed)
            return
        if table is not None and not self.slots.is_known:
            self.slots.use(table)
