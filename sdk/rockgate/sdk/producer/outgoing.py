"""Messages made ready to travel: ids, properties, compression, and batches split by size.

Everything that can be refused is refused here, before anything is sent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from rockgate.protocol.entry import COMPRESSED, TRANSACTION_PREPARED
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Fields
from rockgate.protocol.remoting.compression import Compression, compress
from rockgate.protocol.remoting.headers.send import SendHeaderV2
from rockgate.protocol.remoting.ids import UniqueIds
from rockgate.protocol.remoting.message import encode_batch
from rockgate.protocol.remoting.properties import INSTANCE_ID, WAIT_STORE_OK
from rockgate.sdk.client.routes import DEFAULT_TOPIC, QUEUE_COUNT_OF_NEW
from rockgate.sdk.errors import InvalidMessage
from rockgate.sdk.message import RETRY_PREFIX, Message, check, pack, retry_counts
from rockgate.sdk.results import Queue

COMPRESS_ASIDE_BYTES: Final = 64 * 1024
"""A larger body takes longer to compress than the loop may be held up."""
BATCH_COUNT_MAX: Final = 4096
_BATCHED_SIZE: Final = 22
"""What a message of a batch takes besides its body and properties."""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One send request, independent of its queue."""

    topic: str
    code: int
    body: bytes
    properties: str
    ids: tuple[str, ...]
    born_ms: int
    sys_flag: int = 0
    flag: int = 0
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    is_timed: bool = False
    """Whether it has a time of delivery, which brokers before 5.0 do not know."""
    is_delayed_half: bool = False
    """Whether it is half a message with a delay, which only rockgate keeps."""

    def fields(self, group: str, topic: str, queue: Queue) -> Fields:
        """The header fields for this queue; the topic's name is the one on the wire."""
        return headers.write(
            SendHeaderV2(
                producer_group=group,
                topic=topic,
                default_topic=DEFAULT_TOPIC,
                default_topic_queue_nums=QUEUE_COUNT_OF_NEW,
                queue_id=queue.id,
                sys_flag=self.sys_flag,
                born_timestamp=self.born_ms,
                flag=self.flag,
                properties=self.properties,
                reconsume_times=self.reconsume_times,
                max_reconsume_times=self.max_reconsume_times,
                batch=self.code == RequestCode.SEND_BATCH_MESSAGE,
                bname=queue.broker,
            )
        )


class Packer:
    """Makes messages ready to travel, and their ids."""

    def __init__(
        self,
        *,
        now_ms: Callable[[], int],
        body_size_max: int,
        compress_over: int,
        namespace: str = "",
    ) -> None:
        self._now_ms = now_ms
        self._body_size_max = body_size_max
        self._compress_over = compress_over
        self._namespace = {INSTANCE_ID: namespace} if namespace else {}
        # Java's have the host's address there; random bytes tell hosts apart where names repeat.
        self._ids = UniqueIds(os.urandom(4), os.getpid(), int.from_bytes(os.urandom(4), "big"))
        self._month = (0, 0)

    async def single(
        self,
        message: Message,
        more: Mapping[str, str] | None = None,
        *,
        is_half: bool = False,
        code: int = RequestCode.SEND_MESSAGE_V2,
    ) -> Outgoing:
        """One message, with more properties than the application's."""
        check(message, self._body_size_max)
        now_ms = self._now_ms()
        message_id = self._next_id(now_ms)
        if self._namespace:
            more = {**self._namespace, **(more or {})}
        tried, tries_max = retry_counts(message)
        properties = pack(message, message_id, now_ms, more)
        body, sys_flag = bytes(message.body), 0
        if len(body) >= self._compress_over:
            body, sys_flag = await self._compressed(body)
        return Outgoing(
            topic=message.topic,
            code=code,
            body=body,
            properties=properties,
            ids=(message_id,),
            born_ms=now_ms,
            sys_flag=sys_flag | (TRANSACTION_PREPARED if is_half else 0),
            flag=message.flag,
            reconsume_times=tried,
            max_reconsume_times=tries_max,
            is_timed=isinstance(message.delay, timedelta | datetime),
            is_delayed_half=is_half and message.delay is not None,
        )

    def batches(
        self, messages: Sequence[Message], more: Mapping[str, str] | None = None
    ) -> list[Outgoing]:
        """As few requests as hold the messages, in their order."""
        if not messages:
            return []
        now_ms = self._now_ms()
        topic = messages[0].topic
        if self._namespace:
            more = {**self._namespace, **(more or {})}
        parts: list[Outgoing] = []
        ids: list[str] = []
        contents: list[tuple[int, bytes, bytes]] = []
        total = 0
        for message in messages:
            self._check_batched(message, topic)
            message_id = self._next_id(now_ms)
            packed = pack(message, message_id, now_ms, more).encode()
            size = _BATCHED_SIZE + len(message.body) + len(packed)
            if size > self._body_size_max:
                raise InvalidMessage(
                    f"Message takes {size:,} bytes of a batch;"
                    f" the maximum is {self._body_size_max:,}."
                )
            if total + size > self._body_size_max or len(ids) == BATCH_COUNT_MAX:
                parts.append(_batch(topic, ids, contents, now_ms))
                ids, contents, total = [], [], 0
            ids.append(message_id)
            contents.append((message.flag, bytes(message.body), packed))
            total += size
        parts.append(_batch(topic, ids, contents, now_ms))
        return parts

    # Private

    def _check_batched(self, message: Message, topic: str) -> None:
        check(message, self._body_size_max)
        if message.topic != topic:
            raise InvalidMessage(f"A batch must have one topic, not {topic} and {message.topic}.")
        if message.delay is not None:
            raise InvalidMessage("Messages in a batch cannot be delayed.")
        if topic.startswith(RETRY_PREFIX):
            raise InvalidMessage("Messages of retry topics cannot be sent in a batch.")

    async def _compressed(self, body: bytes) -> tuple[bytes, int]:
        if len(body) > COMPRESS_ASIDE_BYTES:
            smaller = await asyncio.to_thread(compress, body, Compression.ZLIB)
        else:
            smaller = compress(body, Compression.ZLIB)
        if len(smaller) >= len(body):
            return body, 0
        return smaller, COMPRESSED | Compression.ZLIB

    def _next_id(self, now_ms: int) -> str:
        start_ms, end_ms = self._month
        if not start_ms <= now_ms < end_ms:
            day = datetime.fromtimestamp(now_ms / 1000, UTC)
            start = datetime(day.year, day.month, 1, tzinfo=UTC)
            end = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
            start_ms, end_ms = (int(time.timestamp() * 1000) for time in (start, end))
            self._month = (start_ms, end_ms)
        return self._ids.next(now_ms - start_ms)


def _batch(
    topic: str, ids: list[str], contents: list[tuple[int, bytes, bytes]], now_ms: int
) -> Outgoing:
    return Outgoing(
        topic=topic,
        code=RequestCode.SEND_BATCH_MESSAGE,
        body=encode_batch(contents),
        properties=f"{WAIT_STORE_OK}\x01true\x02",
        ids=tuple(ids),
        born_ms=now_ms,
    )
