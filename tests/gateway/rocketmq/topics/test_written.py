"""Written tables: under a lock, never made again when they were lost, or a fixed order instead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable
from rockgate.gateway.rocketmq.topics.written import (
    MARK_KEY,
    WrittenTables,
    interleaved,
)
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig, SubscriptionGroups
from rockgate.protocol.remoting.bodies.topics import GroupList
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

GROUP = "rockgate_gateways"


class Values:
    """Name servers and brokers, as far as tables go."""

    def __init__(self) -> None:
        self.kept: dict[str, list[str]] = {}
        self.known: list[str] = []
        self.progress: list[str] = []
        self.masters: Sequence[str] = ["a", "b"]

    async def values(self, namespace: str, key: str) -> list[str]:
        await asyncio.sleep(0)
        return list(self.kept.get(key, ()))

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        self.kept[key] = [value]

    async def remove_value(self, namespace: str, key: str) -> None:
        self.kept.pop(key, None)

    async def ask(self, broker: str, code: RequestCode, *_: Any, **__: Any) -> Command:
        if code is RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
            table = {each: SubscriptionGroupConfig(group_name=each) for each in self.known}
            body = javajson.encode(SubscriptionGroups(subscription_group_table=table))
        else:
            assert code is RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
            body = javajson.encode(GroupList(group_list=self.progress))
        return Command(ResponseCode.SUCCESS, body=body)

    async def send(self, queue: QueueName, body: Any, born_ms: int) -> Command:
        raise AssertionError("tables send nothing")


class Guard:
    """One lock for all tables; `is_free` says whether it can be had."""

    def __init__(self) -> None:
        self.is_free = True
        self.count = 0

    @asynccontextmanager
    async def writing(self, wire: str) -> AsyncIterator[None]:
        if not self.is_free:
            raise BrokerLost("the lock is another's")
        self.count += 1
        yield


async def test_a_table_is_made_from_the_route_under_the_lock_of_its_topic() -> None:
    values, guard = Values(), Guard()
    tables = WrittenTables(values, guard)
    table = await tables.covering("orders", {"b": 1, "a": 2})
    assert table is not None
    assert table.text == "a:2;b:1"
    assert values.kept == {"orders": ["a:2;b:1"]}
    assert await tables.covering("orders", {"a": 2}) is not None
    assert guard.count == 1, "nothing grew"


async def test_without_the_lock_nothing_is_written() -> None:
    values, guard = Values(), Guard()
    guard.is_free = False
    tables = WrittenTables(values, guard)
    assert await tables.covering("orders", {"a": 2}) is None
    values.kept["orders"] = ["a:2"]
    table = await tables.covering("orders", {"a": 2, "b": 1})
    assert table is not None
    assert table.text == "a:2", "what is written is served"
    assert values.kept == {"orders": ["a:2"]}


async def test_what_another_wrote_before_the_lock_was_had_counts() -> None:
    values = Values()

    class Late(Guard):
        @asynccontextmanager
        async def writing(self, wire: str) -> AsyncIterator[None]:
            values.kept["orders"] = ["b:1;a:2"]
            yield

    table = await WrittenTables(values, Late()).covering("orders", {"a": 2, "b": 1})
    assert table is not None
    assert table.text == "b:1;a:2"


async def test_a_new_cluster_is_marked_and_a_marked_one_is_not_asked() -> None:
    values = Values()
    tables = WrittenTables(values)
    await tables.check(GROUP, is_confirmed=False)
    assert values.kept == {MARK_KEY: ["written"]}
    assert not tables.are_lost
    values.known = [GROUP]
    await tables.check(GROUP, is_confirmed=False)
    assert not tables.are_lost


async def test_a_lost_table_stops_a_topic_with_progress_until_it_is_confirmed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    values = Values()
    values.known, values.progress = [GROUP], ["readers"]
    tables = WrittenTables(values)
    await tables.check(GROUP, is_confirmed=False)
    assert tables.are_lost
    assert await tables.covering("orders", {"a": 4, "b": 2}) is None
    assert "-k 'orders' -v 'a:4;b:2'" in caplog.text
    assert "--confirm-tables" in caplog.text
    values.progress = []
    assert await tables.covering("quiet", {"a": 4}) is not None, "nobody has read it"
    values.progress = ["readers"]
    values.kept["orders"] = ["b:2;a:4"]
    table = await tables.covering("orders", {"a": 4, "b": 2})
    assert table is not None
    assert table.text == "b:2;a:4", "an operator wrote it"
    await tables.check(GROUP, is_confirmed=True)
    assert await tables.covering("other", {"a": 4}) is not None


async def test_a_fixed_order_replaces_what_is_written() -> None:
    values = Values()
    tables = WrittenTables(values, fixed=["b", "a"])
    await tables.check(GROUP, is_confirmed=False)
    table = await tables.covering("orders", {"a": 2, "b": 2})
    assert table is not None
    assert [table.place(at) for at in range(table.count)] == [
        ("b", 0),
        ("a", 0),
        ("b", 1),
        ("a", 1),
    ]
    away = await tables.covering("orders", {"a": 2})
    assert away is not None
    assert away.text == table.text
    assert tables.spread(PartitionTable(), 3, ["a", "b"]).text == "b:1;a:1;b:1"
    assert values.kept == {}


def test_a_broker_that_was_never_seen_counts_as_the_others() -> None:
    assert interleaved(["a", "b"], {"a": 2}).count == 4
    assert interleaved(["a", "b"], {"a": 2, "b": 1}).count == 3
    assert interleaved(["a", "b"], {}).count == 0
