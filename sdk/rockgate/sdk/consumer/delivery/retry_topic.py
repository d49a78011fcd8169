"""Sends a failed message to its group's retry topic, if its broker does not accept it back."""

from __future__ import annotations

from typing import Final

from rockgate.protocol.entry import pack_properties
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.sdk.client.client import Client
from rockgate.sdk.consumer.delivery.redelivery import BROKER_CHOOSES, DEAD_LETTER, level_of_try
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.producer.outgoing import Outgoing
from rockgate.sdk.producer.router import Router
from rockgate.sdk.received import Received

GROUP: Final = "CLIENT_INNER_PRODUCER"
SEND_S: Final = 3.0
RETRY_COUNT: Final = 2


class RetryTopic:
    """The retry topic of one group, written to as any other topic is."""

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._topic = f"{RETRY_PREFIX}{group}"
        self._router = Router(
            client,
            GROUP,
            timeout_s=SEND_S,
            retry_count=RETRY_COUNT,
            retry_not_ok=False,
            avoid_slow=False,
        )

    async def send(self, message: Received, level: int, retry_count_max: int) -> None:
        """The same message again, as a retry with its delay."""
        retries = message.tries - 1
        if level in (BROKER_CHOOSES, DEAD_LETTER):
            level = level_of_try(retries)
        properties = {
            name: value
            for name, value in message.properties.items()
            if name != names.TRANSACTION_PREPARED
        }
        properties[names.RETRY_TOPIC] = message.wire_topic
        properties.setdefault(names.ORIGIN_MESSAGE_ID, message.offset_message_id)
        properties[names.DELAY_LEVEL] = str(level)
        outgoing = Outgoing(
            topic=self._topic,
            code=RequestCode.SEND_MESSAGE_V2,
            body=message.body,
            properties=pack_properties(properties.items()).decode(),
            ids=(message.message_id,),
            born_ms=self._client.now_ms(),
            flag=message.flag,
            reconsume_times=retries + 1,
            max_reconsume_times=retry_count_max if retry_count_max >= 0 else None,
        )
        await self._router.deliver(outgoing, None, SEND_S)
