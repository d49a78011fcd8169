"""The roster: the client id of every gateway, written in the name servers before it asks for locks.

A lock outlives its holder, and brokers do not say who that is. Who leads next may never have seen
it: because all others ended as well, or because this one started later. So its name is written
down, and a lock that is not given is freed in the name of whoever is written and not listed.

    entered     before the broker's group is joined, and again when a look finds the name missing
    read        when a lock is not given, every READ_S at most; and every LOOK_S
    removed     by its gateway when that leaves and its locks are free; by others when no broker
                has listed it for GONE_S
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.gateways import Gateway, gateways_of
from rockgate.gateway.rocketmq.members.terms import LeaderTerms

NAMESPACE: Final = "rockgate_gateways"
"""Of the key-value configs: a key for each gateway, its client id."""
HERE: Final = "1"
READ_S: Final = 1.0
LOOK_S: Final = 30.0
GONE_S: Final = 180.0
"""Longer than any of its locks lasts (60 s), and than a broker lists who is silent (120 s)."""

log = logging.getLogger(__name__)


class RosterValues(Protocol):
    """Values that every name server has."""

    async def namespace(self, namespace: str) -> dict[str, str]:
        """All values of a namespace that any name server has."""
        ...

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Store a value at every name server."""
        ...

    async def remove_value(self, namespace: str, key: str) -> None:
        """Delete a value at every name server."""
        ...


class Roster:
    """The roster as one gateway reads and writes it."""

    def __init__(
        self, me: Gateway, name_servers: RosterValues, terms: LeaderTerms, clock: Clock
    ) -> None:
        self._me = me
        self._name_servers = name_servers
        self._terms = terms
        self._clock = clock
        self._read_at: float | None = None
        self._looked_at: float | None = None
        self._missed_since: dict[Gateway, float] = {}
        """Who is written and listed by no broker, and since when that was seen."""

    async def enter(self) -> None:
        """Write this gateway down; a failure is logged, and a later look tries again."""
        try:
            await self._name_servers.put_value(NAMESPACE, self._me.client_id, HERE)
        except BrokerError as failed:
            log.warning("this gateway is not in the roster yet: %s", failed)

    async def look(self) -> None:
        """Every LOOK_S: enter again if that is needed, and remove who has been gone for long."""
        now = self._clock.time()
        if self._looked_at is not None and now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        written = await self._read()
        if written is None:
            return
        if self._me not in written:
            await self.enter()
        there = {self._me, *self._terms.all_gateways()}
        self._missed_since = {
            each: self._missed_since.get(each, now) for each in written if each not in there
        }
        for each, since in list(self._missed_since.items()):
            if now - since > GONE_S:
                await self._remove(each)

    async def has_more(self) -> bool:
        """Read again, if the last time is long enough ago; whether that showed new names."""
        now = self._clock.time()
        if self._read_at is not None and now - self._read_at < READ_S:
            return False
        before = self._terms.known_count
        await self._read()
        return self._terms.known_count != before

    async def leave(self) -> None:
        """Remove this gateway, whose locks are free."""
        await self._remove(self._me)

    # Private

    async def _read(self) -> tuple[Gateway, ...] | None:
        self._read_at = self._clock.time()
        try:
            written = gateways_of(await self._name_servers.namespace(NAMESPACE))
        except BrokerError as failed:
            log.warning("cannot read the roster of gateways: %s", failed)
            return None
        self._terms.know(written)
        return written

    async def _remove(self, gateway: Gateway) -> None:
        try:
            await self._name_servers.remove_value(NAMESPACE, gateway.client_id)
        except BrokerError as failed:
            log.info("gateway %s stays in the roster: %s", gateway.client_id, failed)
        else:
            self._missed_since.pop(gateway, None)
