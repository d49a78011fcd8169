"""The roster: whose locks may be freed is written down, and who is gone for long is removed."""

from __future__ import annotations

import pytest
from tests.gateway.fakes import HandClock
from tests.sdk.memorynet import run

from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.members import roster
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.roster import GONE_S, LOOK_S, READ_S, Roster
from rockgate.gateway.rocketmq.members.terms import FENCE_S, LeaderTerms

ME, OTHER, DEAD = (Gateway.at(Address("10.0.0.1", port)) for port in (1, 2, 3))


class NameServers:
    """The values of one namespace, and how often they were read."""

    def __init__(self, *names: Gateway) -> None:
        self.table = {each.client_id: "1" for each in names}
        self.reads = 0
        self.is_away = False

    async def namespace(self, namespace: str) -> dict[str, str]:
        self._ask(namespace)
        self.reads += 1
        return dict(self.table)

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        self._ask(namespace)
        self.table[key] = value

    async def remove_value(self, namespace: str, key: str) -> None:
        self._ask(namespace)
        self.table.pop(key, None)

    def _ask(self, namespace: str) -> None:
        assert namespace == roster.NAMESPACE
        if self.is_away:
            raise BrokerLost("away")


class One:
    """The roster of one gateway, and a broker that lists it."""

    def __init__(self, *written: Gateway) -> None:
        self.clock = HandClock()
        self.names = NameServers(*written)
        self.terms = LeaderTerms(ME.node_id, self.clock)
        self.roster = Roster(ME, self.names, self.terms, self.clock)
        self.terms.seen("a", [ME], self.clock.time())

    def pass_by(self, seconds: float, *listed: Gateway) -> None:
        until = self.clock.time() + seconds
        while self.clock.time() < until:
            self.clock.advance(0.05)
            if self.clock.time() % (FENCE_S / 2) < 0.05:
                self.terms.seen("a", sorted([ME, *listed]), self.clock.time())
                run(self.roster.look())


def test_who_is_written_and_not_listed_is_gone() -> None:
    one = One(DEAD)
    assert one.terms.gone([ME]) == []
    assert run(one.roster.has_more())
    assert one.terms.gone([ME]) == [DEAD]


def test_the_roster_is_read_once_in_a_while() -> None:
    one = One(DEAD)
    run(one.roster.has_more())
    assert not run(one.roster.has_more())
    assert one.names.reads == 1
    one.clock.advance(READ_S)
    assert not run(one.roster.has_more())
    assert one.names.reads == 2


def test_a_gateway_enters_and_leaves() -> None:
    one = One()
    run(one.roster.enter())
    assert one.names.table == {ME.client_id: "1"}
    run(one.roster.leave())
    assert one.names.table == {}


def test_who_was_removed_or_could_not_enter_does_so_later() -> None:
    one = One()
    one.names.is_away = True
    run(one.roster.enter())
    one.pass_by(LOOK_S + FENCE_S)
    one.names.is_away = False
    assert one.names.table == {}
    one.pass_by(LOOK_S + FENCE_S)
    assert ME.client_id in one.names.table


def test_who_is_not_listed_for_long_is_removed_and_who_is_listed_stays() -> None:
    one = One(ME, OTHER, DEAD)
    one.pass_by(GONE_S - LOOK_S, OTHER)
    assert DEAD.client_id in one.names.table
    one.pass_by(3 * LOOK_S, OTHER)
    assert set(one.names.table) == {ME.client_id, OTHER.client_id}


def test_who_comes_back_is_not_removed() -> None:
    one = One(ME, OTHER)
    one.pass_by(GONE_S - LOOK_S)
    one.pass_by(2 * LOOK_S, OTHER)
    one.pass_by(GONE_S - LOOK_S)
    assert OTHER.client_id in one.names.table


@pytest.mark.parametrize(
    "name", ["", "x", "10.0.0.1:9@-1", "10.0.0.1:0@1", "10.0.0.1:9@" + "9" * 20]
)
def test_what_is_no_gateway_is_ignored(name: str) -> None:
    one = One(DEAD)
    one.names.table[name] = "1"
    assert run(one.roster.has_more())
    assert one.terms.gone([ME]) == [DEAD]
