"""Messages made ready to travel: ids, properties, compression, and batches split by size.

Everything that can be refused is refused here, before anything is sent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rockgate.protocol.entry import COMPRESSED, TRANSACTION_PREPARED
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Fields
from rockgate.protocol.remoting.compression import Compression, compress
from rockgate.protocol.remoting.headers.sending import SendHeaderV2
from rockgate.protocol.remoting.ids import UniqueIds
from rockgate.protocol.remoting.message import encode_batch
from rockgate.protocol.remoting.properties import WAIT_STORE_OK
from rockgate.sdk.errors import InvalidMessage
from rockgate.sdk.message import Message, check, pack
from rockgate.sdk.routes import DEFAULT_TOPIC, QUEUE_COUNT_OF_NEW, Queue

COMPRESS_ASIDE_BYTES: Final = 64 * 1024
"""A larger body takes longer to compress than the loop may be held up."""
BATCH_COUNT_MAX: Final = 4096
_BATCHED_SIZE: Final = 22
"""What a message of a batch takes besides its body and properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to send, whatever queue it goes to."""

    topic: str
    code: int
    body: bytes
    properties: str
    ids: tuple[str, ...]
    born_ms: int
    sys_flag: int = 0
    flag: int = 0

    def fields(self, group: str, queue: Queue) -> Fields:
        """Its header, on the way to this queue."""
        return headers.write(
            SendHeaderV2(
                producer_group=group,
                topic=self.topic,
                default_topic=DEFAULT_TOPIC,
                default_topic_queue_nums=QUEUE_COUNT_OF_NEW,
                queue_id=queue.id,
                sys_flag=self.sys_flag,
                born_timestamp=self.born_ms,
                flag=self.flag,
                properties=self.properties,
                reconsume_times=0,
                batch=self.code == RequestCode.SEND_BATCH_MESSAGE,
                bname=queue.broker,
            )
        )


class Packer:
    """Makes messages ready to travel, and their ids."""

    def __init__(
        self, *, now_ms: Callable[[], int], body_size_max: int, compress_over: int
    ) -> None:
        self._now_ms = now_ms
        self._body_size_max = body_size_max
        self._compress_over = compress_over
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
        properties = pack(message, message_id, now_ms, more or {}).decode()
        body, sys_flag = await self._compressed(bytes(message.body))
        return Outgoing(
            topic=message.topic,
            code=code,
            body=body,
            properties=properties,
            ids=(message_id,),
            born_ms=now_ms,
            sys_flag=sys_flag | (TRANSACTION_PREPARED if is_half else 0),
            flag=message.flag,
        )

    def batches(self, messages: Sequence[Message]) -> list[Outgoing]:
        """As few requests as hold the messages, in their order."""
        if not messages:
            return []
        now_ms = self._now_ms()
        ready: list[tuple[str, tuple[int, bytes, bytes]]] = []
        for message in messages:
            check(message, self._body_size_max)
            if message.topic != messages[0].topic:
                raise InvalidMessage(
                    f"a batch has one topic: {messages[0].topic} and {message.topic}"
                )
            if message.delay is not None:
                raise InvalidMessage("a message of a batch cannot be delayed")
            message_id = self._next_id(now_ms)
            packed = pack(message, message_id, now_ms, {})
            size = _BATCHED_SIZE + len(message.body) + len(packed)
            if size > self._body_size_max:
                raise InvalidMessage(
                    f"a message takes {size} bytes of a batch, {self._body_size_max} may be"
                )
            ready.append((message_id, (message.flag, bytes(message.body), packed)))
        return [self._batch(messages[0].topic, part, now_ms) for part in self._split(ready)]

    # Private

    def _split(
        self, ready: list[tuple[str, tuple[int, bytes, bytes]]]
    ) -> list[list[tuple[str, tuple[int, bytes, bytes]]]]:
        parts: list[list[tuple[str, tuple[int, bytes, bytes]]]] = [[]]
        size = 0
        for one in ready:
            _, (_, body, packed) = one
            taken = _BATCHED_SIZE + len(body) + len(packed)
            if size + taken > self._body_size_max or len(parts[-1]) == BATCH_COUNT_MAX:
                parts.append([])
                size = 0
            parts[-1].append(one)
            size += taken
        return parts

    def _batch(
        self, topic: str, part: list[tuple[str, tuple[int, bytes, bytes]]], now_ms: int
    ) -> Outgoing:
        return Outgoing(
            topic=topic,
            code=RequestCode.SEND_BATCH_MESSAGE,
            body=encode_batch(content for _, content in part),
            properties=f"{WAIT_STORE_OK}\x01true\x02",
            ids=tuple(message_id for message_id, _ in part),
            born_ms=now_ms,
        )

    async def _compressed(self, body: bytes) -> tuple[bytes, int]:
        if len(body) <= self._compress_over:
            return body, 0
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
