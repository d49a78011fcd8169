"""Membership: an ordinary consumer group at every master, in which each gateway is a member.

A round at a broker is a heartbeat (34), the list of members (38) and when each was heard (328):

    every BEAT_S, and at once when the broker says that members have changed (40)
    the broker's own clock says who is silent: all who ask it agree
    a round that fails changes nothing; the view is void after a while, or with its connection

A gateway whose view was lost leaves the group before it joins again (35): so all others learn of
its return in that moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway
from rockgate.gateway.rocketmq.members.listing import Listing
from rockgate.gateway.rocketmq.members.terms import LeaderTerms
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import (
    ConsumerData,
    HeartbeatBody,
    ProducerData,
    SubscriptionGroupConfig,
)
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.clients import UnregisterClientHeader

BEAT_S: Final = 3.0
ANSWER_S: Final = 4.0
AGAIN_S: Final = 0.5
"""How soon a round that failed is tried again."""
PAUSE_S: Final = 0.02
"""Between rounds, however often members change."""

log = logging.getLogger(__name__)


class Masters(Brokers, Protocol):
    """All masters of a cluster, by name."""

    @property
    def masters(self) -> Sequence[str]:
        """The names of masters that are there."""
        ...


class Membership:
    """This gateway's membership at every master."""

    def __init__(self, me: Gateway, masters: Masters, terms: LeaderTerms, clock: Clock) -> None:
        self._me = me
        self._masters = masters
        self._terms = terms
        self._clock = clock
        self._rounds: dict[str, _Rounds] = {}

    async def join(self, timeout_s: float) -> None:
        """Join at every master; those that do not answer in time are joined later."""
        self.refresh()
        firsts = [each.first for each in self._rounds.values()]
        if firsts:
            await asyncio.wait(firsts, timeout=timeout_s)

    def refresh(self) -> None:
        """Begin where a master is new; one that is away is asked until it is there again."""
        for broker in self._masters.masters:
            if broker not in self._rounds:
                self._rounds[broker] = _Rounds(
                    broker, self._me, self._masters, self._terms, self._clock
                )

    def changed(self, broker: str) -> None:
        """A broker says that members have changed."""
        rounds = self._rounds.get(broker)
        if rounds is not None:
            rounds.wake.set()

    def lost(self, broker: str) -> None:
        """The connection to a broker was lost."""
        self._terms.lost(broker, "the connection was lost")
        self.changed(broker)

    def stopped(self) -> None:
        """This process did not run for a while."""
        for broker in self._rounds:
            self.changed(broker)

    async def leave(self) -> None:
        """Leave the group at every master: the others take over at once."""
        self._terms.close()
        rounds = list(self._rounds.values())
        for each in rounds:
            each.task.cancel()
        await asyncio.gather(*(each.leave() for each in rounds), return_exceptions=True)


class _Rounds:
    """The rounds at one broker."""

    def __init__(
        self, broker: str, me: Gateway, brokers: Brokers, terms: LeaderTerms, clock: Clock
    ) -> None:
        self._broker = broker
        self._me = me
        self._brokers = brokers
        self._listing = Listing(me, brokers)
        self._terms = terms
        self._clock = clock
        self._body = javajson.encode(_heartbeat(me))
        self._is_failing = False
        self.wake = asyncio.Event()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def leave(self) -> None:
        """Leave the group."""
        header = UnregisterClientHeader(
            client_id=self._me.client_id, producer_group=GROUP, consumer_group=GROUP
        )
        await self._brokers.ask(
            self._broker, RequestCode.UNREGISTER_CLIENT, header, timeout_s=ANSWER_S
        )

    async def _run(self) -> None:
        while True:
            self.wake.clear()
            wait_s = BEAT_S
            try:
                await self._round()
                self._is_failing = False
            except (BrokerError, MalformedRequest) as failed:
                level = logging.DEBUG if self._is_failing else logging.WARNING
                log.log(level, "no membership at broker %s: %s", self._broker, failed)
                self._is_failing, wait_s = True, AGAIN_S
            except Exception:  # one failed round must not be the last
                log.exception("membership at broker %s failed", self._broker)
            if not self.first.done():
                self.first.set_result(None)
            timer = self._clock.call_later(wait_s, self.wake.set)
            await self.wake.wait()
            timer.cancel()
            await _pause(self._clock, PAUSE_S)

    async def _round(self) -> None:
        if not self._terms.gateways(self._broker):
            await self.leave()
        sent_at = self._clock.time()
        checked(await self._ask(RequestCode.HEART_BEAT, self._body))
        listed = await self._listing.gateways(self._broker)
        if self._me not in listed:
            # A broker that does not create groups by itself takes no member of an unknown one.
            body = javajson.encode(SubscriptionGroupConfig(group_name=GROUP))
            checked(await self._ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body))
            checked(await self._ask(RequestCode.HEART_BEAT, self._body))
            listed = await self._listing.gateways(self._broker)
        self._terms.seen(self._broker, listed, sent_at)

    async def _ask(self, code: RequestCode, body: bytes = b"") -> Command:
        return await self._brokers.ask(self._broker, code, None, body, timeout_s=ANSWER_S)


def _heartbeat(me: Gateway) -> HeartbeatBody:
    return HeartbeatBody(
        client_id=me.client_id,
        consumer_data_set=[ConsumerData(group_name=GROUP, consume_type="CONSUME_ACTIVELY")],
        producer_data_set=[ProducerData(group_name=GROUP)],
    )


async def _pause(clock: Clock, seconds: float) -> None:
    over = asyncio.Event()
    clock.call_later(seconds, over.set)
    await over.wait()
