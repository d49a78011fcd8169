"""Locks at brokers (41, 42): they outlive the connection of their holder, for 60 s unless renewed.

A lock is a message queue of the gateways' group. Brokers do not say who holds one, and unlock in
the name of any client that is given: so a successor frees what a gateway held that the same broker
no longer lists. The roster has the names of those that it has never seen.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import Brokers, QueueName, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway
from rockgate.gateway.rocketmq.members.listing import Listing
from rockgate.gateway.rocketmq.members.roster import Roster
from rockgate.gateway.rocketmq.members.terms import LeaderTerms
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody, MessageQueue
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.errors import MalformedRequest

LOCK_S: Final = 60.0
"""How long brokers keep a lock that is not renewed."""
RENEW_S: Final = 20.0
ANSWER_S: Final = 4.0
FRESH_S: Final = 0.5
"""How old a broker's list may be when a lock is freed: who joins waits for longer (`WAIT_S`)."""
SIZE_MAX: Final = 4 << 20

log = logging.getLogger(__name__)


class BrokerLocks:
    """The locks of one gateway."""

    def __init__(
        self, me: Gateway, brokers: Brokers, terms: LeaderTerms, roster: Roster, clock: Clock
    ) -> None:
        self._me = me
        self._brokers = brokers
        self._terms = terms
        self._roster = roster
        self._clock = clock
        self._listing = Listing(me, brokers)

    async def lock(self, broker: str, queues: Collection[QueueName]) -> set[QueueName]:
        """Lock queues or renew their locks; those that are held now. BrokerError on failure."""
        body = javajson.encode(_body(self._me, queues))
        answer = checked(
            await self._brokers.ask(
                broker, RequestCode.LOCK_BATCH_MQ, None, body, timeout_s=ANSWER_S
            )
        )
        try:
            found = javajson.decode(answer.body, LockedBody, "41", size_max=SIZE_MAX)
        except MalformedRequest as wrong:
            raise BrokerLost(f"cannot decode the answer: {wrong.reason}") from None
        held = {
            QueueName(each.topic, each.broker_name, each.queue_id) for each in found.lock_ok_mq_set
        }
        return held & set(queues)

    async def unlock(
        self, broker: str, queues: Collection[QueueName], holder: Gateway | None = None
    ) -> None:
        """Unlock queues, in the name of another gateway if one is given."""
        body = javajson.encode(_body(holder or self._me, queues))
        code = RequestCode.UNLOCK_BATCH_MQ
        checked(await self._brokers.ask(broker, code, None, body, timeout_s=ANSWER_S))

    async def take_over(self, broker: str, queues: Collection[QueueName]) -> set[QueueName]:
        """Lock queues, also those that gateways hold whom the broker no longer lists."""
        held = await self.lock(broker, queues)
        left = set(queues) - held
        if left:
            held |= await self._free(broker, left)
            left -= held
        if left and await self._roster.has_more():
            held |= await self._free(broker, left)
        return held

    async def _free(self, broker: str, queues: set[QueueName]) -> set[QueueName]:
        # Not by the view: who joined a moment ago may hold a lock, and word of it may be lost.
        asked_at = self._clock.time()
        try:
            listed = await self._listing.gateways(broker)
        except MalformedRequest as wrong:
            raise BrokerLost(f"cannot decode the answer: {wrong.reason}") from None
        gone = self._terms.gone(listed) if self._me in listed else []
        if not gone:
            return set()
        for each in gone:
            if self._clock.time() - asked_at > FRESH_S:
                break
            await self.unlock(broker, queues, each)
        freed = await self.lock(broker, queues)
        if freed:
            log.info("freed %d locks at broker %s of gateways that are gone", len(freed), broker)
        return freed


def _body(holder: Gateway, queues: Collection[QueueName]) -> LockBody:
    return LockBody(
        client_id=holder.client_id,
        consumer_group=GROUP,
        mq_set=[
            MessageQueue(broker_name=each.broker, queue_id=each.queue_id, topic=each.topic)
            for each in queues
        ],
    )
