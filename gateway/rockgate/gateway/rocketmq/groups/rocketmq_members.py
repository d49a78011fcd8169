"""Whether a group has members on RocketMQ's side, which brokers list (38).

Such a group cannot be joined by Kafka's members: both would read everything. Brokers drop a member
with its connection, and one that is silent after two minutes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.groups.progress import wire_group
from rockgate.gateway.rocketmq.topics.catalog import Cluster
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerIds
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.clients import ConsumerGroupHeader

FRESH_S: Final = 2.0
"""How long an answer counts: members of a rebalance join at about the same time."""
ANSWERS_MAX: Final = 10_000
ANSWER_S: Final = 2.0
SIZE_MAX: Final = 1 << 20


class RocketmqMembers:
    """Asks all masters, once for all who join a group at about the same time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._answers: dict[str, tuple[float, bool]] = {}

    def known(self, group: str) -> bool | None:
        """Whether a group has any; None if that has to be asked."""
        found = self._answers.get(group)
        if found is None or asyncio.get_running_loop().time() - found[0] > FRESH_S:
            return None
        return found[1]

    async def ask(self, group: str) -> bool:
        """Ask the masters; a master that does not answer has none."""
        name = wire_group(group)
        found = False
        if name is not None:
            each = await asyncio.gather(*(self._at(at, name) for at in self._cluster.masters))
            found = any(each)
        self._answers.pop(group, None)
        self._answers[group] = (asyncio.get_running_loop().time(), found)
        if len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        return found

    async def _at(self, broker: str, name: str) -> bool:
        header = ConsumerGroupHeader(consumer_group=name)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        try:
            answer = await self._cluster.ask(broker, code, header, timeout_s=ANSWER_S)
            if answer.code != ResponseCode.SUCCESS:
                return False
            found = javajson.decode(answer.body, ConsumerIds, "38", size_max=SIZE_MAX)
        except (BrokerError, MalformedRequest):
            return False
        return bool(found.consumer_id_list)
