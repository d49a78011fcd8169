"""Locks of gateways that are gone are freed, and no others."""

from __future__ import annotations

import msgspec
import pytest
from tests.gateway.fakes import HandClock
from tests.sdk.memorynet import run

from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway
from rockgate.gateway.rocketmq.members.locks import FRESH_S, BrokerLocks
from rockgate.gateway.rocketmq.members.roster import Roster
from rockgate.gateway.rocketmq.members.terms import WAIT_S, LeaderTerms
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerIds
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Buffer, Command

ME, OTHER = (Gateway.at(Address("10.0.0.1", port)) for port in (1, 2))
SLOT = QueueName(GROUP, "a", 3)


class Broker:
    """One broker with one lock, and the name servers with the roster."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.holder = OTHER.client_id
        self.listed = [ME.client_id]
        self.written: dict[str, str] = {}
        self.slow_s = 0.0
        self.terms = LeaderTerms(ME.node_id, self.clock)
        roster = Roster(ME, self, self.terms, self.clock)
        self.locks = BrokerLocks(ME, self, self.terms, roster, self.clock)

    def take_over(self) -> bool:
        return run(self.locks.take_over("a", {SLOT})) == {SLOT}

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        if code is RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            self.clock.advance(self.slow_s)
            return Command(0, body=javajson.encode(ConsumerIds(consumer_id_list=self.listed)))
        if code is RequestCode.GET_ALL_PRODUCER_INFO:
            return Command(1)
        asked = javajson.decode(body, LockBody, "lock")
        if code is RequestCode.UNLOCK_BATCH_MQ:
            self.holder = "" if self.holder == asked.client_id else self.holder
            return Command(0)
        assert code is RequestCode.LOCK_BATCH_MQ
        self.holder = self.holder or asked.client_id
        locked = asked.mq_set if self.holder == asked.client_id else []
        return Command(0, body=javajson.encode(LockedBody(lock_ok_mq_set=locked)))

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        raise AssertionError("members send nothing")

    async def namespace(self, namespace: str) -> dict[str, str]:
        return self.written

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        self.written[key] = value

    async def remove_value(self, namespace: str, key: str) -> None:
        self.written.pop(key, None)


def test_the_lock_of_one_that_was_listed_and_is_gone_is_freed() -> None:
    broker = Broker()
    broker.terms.seen("a", sorted([ME, OTHER]), broker.clock.time())
    broker.terms.seen("a", [ME], broker.clock.time())
    assert broker.take_over()


def test_the_lock_of_one_that_is_only_written_is_freed() -> None:
    broker = Broker()
    assert not broker.take_over()
    broker.clock.advance(10.0)
    broker.written = {OTHER.client_id: "1"}
    assert broker.take_over()


def test_the_lock_of_one_that_joined_after_the_last_view_is_not_freed() -> None:
    broker = Broker()
    broker.terms.seen("a", sorted([ME, OTHER]), broker.clock.time())
    broker.terms.seen("a", [ME], broker.clock.time())
    broker.listed = [ME.client_id, OTHER.client_id]
    assert not broker.take_over()
    assert broker.holder == OTHER.client_id


def test_nothing_is_freed_by_who_is_not_listed() -> None:
    broker = Broker()
    broker.terms.know([OTHER])
    broker.listed = []
    assert not broker.take_over()


def test_nothing_is_freed_by_an_old_list() -> None:
    broker = Broker()
    broker.terms.know([OTHER])
    broker.slow_s = FRESH_S + 0.1
    assert broker.slow_s < WAIT_S
    assert not broker.take_over()
    broker.slow_s = 0.0
    assert broker.take_over()


def test_a_broken_list_is_a_broker_that_is_lost() -> None:
    broker = Broker()
    broker.listed = ["x" * (2 << 20)]
    with pytest.raises(BrokerLost):
        broker.take_over()
