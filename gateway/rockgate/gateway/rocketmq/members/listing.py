"""What a broker lists: the members of the gateways' group (38), without those that it calls silent.

The broker's own clock says who is silent (328), so all who ask it agree.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.rocketmq.cluster.brokers import Brokers
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway, gateways_of
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerIds, ProducerTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.clients import ConsumerGroupHeader

ANSWER_S: Final = 4.0
SILENT_MS: Final = 10_000
"""Who was not heard for this long is silent; its own view is void before that (`FENCE_S`)."""
LIST_SIZE_MAX: Final = 1 << 20
TABLE_SIZE_MAX: Final = 32 << 20


class Listing:
    """What one gateway asks of brokers about all of them."""

    def __init__(self, me: Gateway, brokers: Brokers) -> None:
        self._me = me
        self._brokers = brokers

    async def gateways(self, broker: str) -> tuple[Gateway, ...]:
        """Those that a broker lists now; BrokerError or MalformedRequest on failure."""
        header = ConsumerGroupHeader(consumer_group=GROUP)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        answer = await self._brokers.ask(broker, code, header, timeout_s=ANSWER_S)
        if answer.code != ResponseCode.SUCCESS:
            # So brokers answer for a group without members.
            return ()
        found = javajson.decode(answer.body, ConsumerIds, "38", size_max=LIST_SIZE_MAX)
        listed = found.consumer_id_list
        if len(listed) > 1 and self._me.client_id in listed:
            silent = await self._silent(broker)
            listed = [each for each in listed if each not in silent]
        return gateways_of(listed)

    async def _silent(self, broker: str) -> set[str]:
        code = RequestCode.GET_ALL_PRODUCER_INFO
        answer = await self._brokers.ask(broker, code, timeout_s=ANSWER_S)
        if answer.code != ResponseCode.SUCCESS:
            return set()
        table = javajson.decode(answer.body, ProducerTable, "328", size_max=TABLE_SIZE_MAX)
        heard: dict[str, int] = {}
        for each in table.data.get(GROUP, ()):
            at_ms = each.last_update_timestamp
            heard[each.client_id] = max(at_ms, heard.get(each.client_id, at_ms))
        now_ms = heard.get(self._me.client_id)
        if now_ms is None:
            return set()
        return {each for each, at_ms in heard.items() if now_ms - at_ms > SILENT_MS}
