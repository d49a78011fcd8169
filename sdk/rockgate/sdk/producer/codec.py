"""A send as it travels, and its answer: headers by hand, results for each message."""

from __future__ import annotations

from typing import Final

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Write
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.send import SentHeader
from rockgate.protocol.remoting.hot.sends import SendHead
from rockgate.sdk.client.routes import DEFAULT_TOPIC, QUEUE_COUNT_OF_NEW
from rockgate.sdk.errors import Refused
from rockgate.sdk.namespaces import wrap
from rockgate.sdk.producer.outgoing import Outgoing
from rockgate.sdk.results import Queue, SendResult, SendStatus

HEADS_MAX: Final = 4096
"""Queues whose header is cached; beyond that, the cache starts over."""
_STATUSES: Final[dict[int, SendStatus]] = {status.value: status for status in SendStatus}


class HeaderCache:
    """The headers of one producer's sends, by queue: most of each is always the same."""

    def __init__(self, group: str, namespace: str) -> None:
        self._group = group
        self._namespace = namespace
        self._heads: dict[tuple[int, Queue], SendHead] = {}

    def writer(self, outgoing: Outgoing, queue: Queue) -> Write:
        """What writes the header of this send to this queue."""
        key = (outgoing.code, queue)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            head = self._heads[key] = SendHead(
                outgoing.code,
                group=self._group,
                topic=wrap(self._namespace, outgoing.topic),
                default_topic=DEFAULT_TOPIC,
                default_queue_count=QUEUE_COUNT_OF_NEW,
                queue_id=queue.id,
                broker=queue.broker,
                is_batch=outgoing.code == RequestCode.SEND_BATCH_MESSAGE,
            )
        write = head.write

        def written(opaque: int, flag: int, body_size: int) -> bytes:
            return write(
                *(opaque, flag, body_size, outgoing.sys_flag, outgoing.born_ms),
                *(outgoing.flag, outgoing.properties),
            )

        return written


def results_of(outgoing: Outgoing, queue: Queue, answer: Command) -> list[SendResult]:
    """What the broker said, for each message that was sent."""
    status = _STATUSES.get(answer.code)
    if status is None:
        raise Refused(_what(outgoing, queue), answer.code, answer.remark)
    try:
        sent = headers.read(answer, SentHeader)
    except MalformedRequest as wrong:
        reason = f"cannot decode the response: {wrong.reason}"
        raise Refused(_what(outgoing, queue), answer.code, reason) from None
    if sent.queue_id != queue.id or queue.topic != outgoing.topic:
        queue = Queue(outgoing.topic, queue.broker, sent.queue_id)
    places = sent.msg_id.split(",")
    if len(places) != len(outgoing.ids):
        places = [sent.msg_id] * len(outgoing.ids)
    first = sent.queue_offset
    return [
        SendResult(
            status=status,
            message_id=message_id,
            offset_message_id=place,
            queue=queue,
            offset=first + index,
            transaction_id=sent.transaction_id,
            recall_handle=sent.recall_handle,
            region=sent.msg_region,
        )
        for index, (message_id, place) in enumerate(zip(outgoing.ids, places, strict=True))
    ]


def _what(outgoing: Outgoing, queue: Queue) -> str:
    return f"send to {outgoing.topic} at {queue.broker}"
