"""Partition tables as they are written down, in the key-value configs of every name server.

Only the holder of a topic's lock writes its table, and reads it again before. A topic without a
table gets one from its route. If tables were lost that had been there, that may move keys: topics
in which groups have progress then stay unknown until an operator says what their table is.

`rocketmq.brokers` in the settings replaces all of it by a fixed order of brokers: partition p is
queue p // n of broker p % n.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol

from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerError, BrokerLost
from rockgate.gateway.rocketmq.topics.partitions import (
    PARTITIONS_MAX,
    InvalidTable,
    PartitionTable,
    Run,
)
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroups
from rockgate.protocol.remoting.bodies.topics import GroupList
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.topics import TopicHeader

NAMESPACE: Final = "rockgate"
MARK_KEY: Final = "#tables"
"""A value under it says that tables are written down: no topic has this name."""
MARK: Final = "written"
GROUPS_SIZE_MAX: Final = 64 << 20

log = logging.getLogger(__name__)


class Values(Brokers, Protocol):
    """What the tables ask of brokers and name servers."""

    @property
    def masters(self) -> Sequence[str]:
        """The names of masters that are there."""
        ...

    async def values(self, namespace: str, key: str) -> list[str]:
        """What name servers have under a key."""
        ...

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Store a value at every name server."""
        ...

    async def remove_value(self, namespace: str, key: str) -> None:
        """Delete a value at every name server."""
        ...


class TableGuard(Protocol):
    """Who may write a table."""

    def writing(self, wire: str) -> AbstractAsyncContextManager[None]:
        """Be the only one to write the table of a topic; BrokerLost if that cannot be."""
        ...


class Unguarded:
    """The guard of a gateway that is alone."""

    def writing(self, wire: str) -> AbstractAsyncContextManager[None]:
        """Always."""
        return nullcontext()


class WrittenTables:
    """The tables of all topics."""

    def __init__(
        self, cluster: Values, guard: TableGuard | None = None, *, fixed: Sequence[str] = ()
    ) -> None:
        """`fixed` are the brokers of `rocketmq.brokers`, in their order."""
        self._cluster = cluster
        self._guard = guard or Unguarded()
        self._fixed = tuple(fixed)
        self._counts: dict[str, dict[str, int]] = {}
        """With fixed brokers: the most queues of each that a route has listed."""
        self.are_lost = False
        """Whether tables were written down once and have vanished."""

    async def check(self, group: str, *, is_confirmed: bool) -> None:
        """Find out whether tables were lost, before the gateways' group is joined.

        They were if a broker knows the group, and no name server that tables were ever written.
        """
        if self._fixed or await self._cluster.values(NAMESPACE, MARK_KEY):
            return
        self.are_lost = not is_confirmed and await self._is_known(group)
        if self.are_lost:
            log.error(
                "The name servers have lost the partition tables of this cluster. Topics without "
                "one in which groups have progress are not served. Write a table with "
                "`mqadmin updateKvConfig -s %s -k TOPIC -v 'BROKER:COUNT;…'`, or have all made "
                "from the routes with `rockgate gateway --confirm-tables`.",
                NAMESPACE,
            )
        else:
            await self._cluster.put_value(NAMESPACE, MARK_KEY, MARK)

    def writing(self, wire: str) -> AbstractAsyncContextManager[None]:
        """Be the only one to write the table of a topic; BrokerLost if that cannot be."""
        return self._guard.writing(wire)

    async def covering(self, wire: str, counts: Mapping[str, int]) -> PartitionTable | None:
        """The table of a topic with all queues of its route; None if it cannot be known now."""
        if self._fixed:
            return self._interleaved(wire, counts)
        written = await self._cluster.values(NAMESPACE, wire)
        table = longest(wire, written)
        if table is None or not _grows(wire, table, counts):
            return table
        if not written and self.are_lost and await self._has_progress(wire):
            log.error(
                "The partition table of topic %s is lost, and groups have progress in it. Write "
                "it with `mqadmin updateKvConfig -s %s -k '%s' -v '%s'` if that is its order, or "
                "start a gateway with --confirm-tables.",
                wire,
                NAMESPACE,
                wire,
                table.covering(counts).text,
            )
            return None
        try:
            async with self._guard.writing(wire):
                table = longest(wire, await self._cluster.values(NAMESPACE, wire))
                if table is None:
                    return None
                grown = table.covering(counts)
                if grown is not table:
                    await self.put(wire, grown)
                return grown
        except BrokerError as failed:
            log.warning("the table of topic %s is not written: %s", wire, failed)
            return table if table is not None and table.count else None

    async def written(self, wire: str) -> PartitionTable | None:
        """The table as it is written, if it is."""
        if self._fixed:
            return None
        table = longest(wire, await self._cluster.values(NAMESPACE, wire))
        return table if table is not None and table.count else None

    def spread(self, table: PartitionTable, count: int, masters: Sequence[str]) -> PartitionTable:
        """A table, grown to `count` partitions over masters."""
        if self._fixed:
            brokers = self._fixed
            return PartitionTable([Run(brokers[at % len(brokers)], 1) for at in range(count)])
        return table.spread(count, masters)

    async def put(self, wire: str, table: PartitionTable) -> None:
        """Write the table of a topic, whose lock is held."""
        if not self._fixed:
            await self._cluster.put_value(NAMESPACE, wire, table.text)

    async def remove(self, wire: str) -> None:
        """Delete the table of a topic."""
        self._counts.pop(wire, None)
        if not self._fixed:
            await self._cluster.remove_value(NAMESPACE, wire)

    # Private

    def _interleaved(self, wire: str, counts: Mapping[str, int]) -> PartitionTable:
        known = self._counts.setdefault(wire, {})
        for broker, count in counts.items():
            known[broker] = max(count, known.get(broker, 0))
        return interleaved(self._fixed, known)

    async def _is_known(self, group: str) -> bool:
        for broker in self._cluster.masters:
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            answer = checked(await self._cluster.ask(broker, code))
            try:
                groups = javajson.decode(
                    answer.body, SubscriptionGroups, "201", size_max=GROUPS_SIZE_MAX
                )
            except MalformedRequest as wrong:
                raise BrokerLost(f"cannot decode the answer: {wrong.reason}") from None
            if group in groups.subscription_group_table:
                return True
        return False

    async def _has_progress(self, wire: str) -> bool:
        for broker in self._cluster.masters:
            code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
            answer = await self._cluster.ask(broker, code, TopicHeader(topic=wire))
            if answer.code != ResponseCode.SUCCESS:
                continue
            try:
                found = javajson.decode(answer.body, GroupList, "300", size_max=GROUPS_SIZE_MAX)
            except MalformedRequest as wrong:
                raise BrokerLost(f"cannot decode the answer: {wrong.reason}") from None
            if found.group_list:
                return True
        return False


def interleaved(brokers: Sequence[str], counts: Mapping[str, int]) -> PartitionTable:
    """Queue 0 of each broker in turn, then queue 1 …; a broker that is away counts as the others.

    What follows the last queue that is there is left out.
    """
    most = max((counts.get(each, 0) for each in brokers), default=0)
    last = max(
        (
            (counts[each] - 1) * len(brokers) + at
            for at, each in enumerate(brokers)
            if counts.get(each, 0) > 0
        ),
        default=-1,
    )
    for at, each in enumerate(brokers):
        if each not in counts and most:
            last = max(last, (most - 1) * len(brokers) + at)
    count = min(last + 1, PARTITIONS_MAX)
    return PartitionTable([Run(brokers[at % len(brokers)], 1) for at in range(count)])


def longest(wire: str, written: Sequence[str]) -> PartitionTable | None:
    """The table that counts; None if name servers contradict each other, which is logged."""
    table = PartitionTable()
    tables: list[PartitionTable] = []
    for text in written:
        try:
            tables.append(PartitionTable.parse(text))
        except InvalidTable as invalid:
            log.error("partition table of topic %s is invalid: %s", wire, invalid)
            return None
        if tables[-1].count > table.count:
            table = tables[-1]
    if not all(table.continues(each) for each in tables):
        log.error("partition tables of topic %s contradict each other: %s", wire, written)
        return None
    return table


def _grows(wire: str, table: PartitionTable, counts: Mapping[str, int]) -> bool:
    grown = table.covering(counts)
    if grown.count > PARTITIONS_MAX:
        log.error("topic %s has too many queues: %d", wire, grown.count)
        return False
    return grown is not table
