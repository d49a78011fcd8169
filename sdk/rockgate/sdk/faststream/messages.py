"""Messages as FastStream's handlers and middlewares see them, and how they are sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from faststream import PublishCommand, StreamMessage
from faststream._internal.configs import BrokerConfig
from faststream._internal.parser import CodecProto, DefaultCodec
from faststream.message.message import AckStatus
from faststream.message.utils import encode_message
from faststream.response.response import BatchPublishCommand

from rockgate.protocol.remoting import properties as names
from rockgate.sdk.client.replies import Reply
from rockgate.sdk.errors import Closed
from rockgate.sdk.message import RESERVED, Delay, Message
from rockgate.sdk.producer.producer import Producer
from rockgate.sdk.received import Received
from rockgate.sdk.results import SendResult

CONTENT_TYPE: Final = "content-type"
CORRELATION_ID: Final = "correlation_id"

Translate: TypeAlias = Callable[[Any], Awaitable[Any]]


@dataclass(slots=True)
class Decision:
    """The outcome of one delivery; the first decision counts."""

    status: AckStatus | None = None
    after: timedelta | None = None

    def take(self, status: AckStatus, after: timedelta | None = None) -> None:
        """Decide, unless it is decided already."""
        if self.status is None:
            self.status, self.after = status, after


Raw = TypeVar("Raw")


class Delivered(StreamMessage[Raw]):
    """What was delivered to a handler, and is acknowledged or not by it."""

    def __init__(self, raw: Raw, decision: Decision, **common: Any) -> None:
        super().__init__(raw, **common)
        self._decision = decision

    async def ack(self) -> None:
        """It is consumed."""
        self._decision.take(AckStatus.ACKED)
        await super().ack()

    async def nack(self, after: timedelta | None = None) -> None:
        """Deliver it again, at least after this time; as `raise NackMessage(after=…)` does."""
        self._decision.take(AckStatus.NACKED, after)
        await super().nack()

    async def reject(self) -> None:
        """Do not deliver it again: it goes to the group's dead letters."""
        self._decision.take(AckStatus.REJECTED)
        await super().reject()


class RocketMessage(Delivered[Received]):
    """A message as FastStream knows it; `raw_message` is the SDK's."""

    def __init__(self, raw: Received, decision: Decision) -> None:
        super().__init__(raw, decision, message_id=raw.message_id, **_common(raw))


class RocketBatch(Delivered[tuple[Received, ...]]):
    """Messages of one queue that a handler gets together, and acknowledges together.

    Headers are those of the first one, and `batch_headers` has them all. Requests in a batch get no
    reply.
    """

    def __init__(self, raw: tuple[Received, ...], decision: Decision) -> None:
        first = _common(raw[0])
        first |= {
            "body": [each.body for each in raw],
            "reply_to": "",
            "batch_headers": [_headers(each.properties) for each in raw],
            "message_id": f"{raw[0].message_id}-{raw[-1].message_id}",
        }
        super().__init__(raw, decision, **first)


class RocketReply(StreamMessage[Reply]):
    """What another client replied to a request."""

    def __init__(self, raw: Reply) -> None:
        super().__init__(raw, **_common(raw))


def _common(raw: Received | Reply) -> dict[str, Any]:
    properties = raw.properties
    return {
        "body": raw.body,
        "headers": _headers(properties),
        "content_type": properties.get(CONTENT_TYPE),
        "correlation_id": properties.get(CORRELATION_ID) or properties.get(names.CORRELATION_ID),
        "reply_to": properties.get(names.REPLY_TO_CLIENT, ""),
    }


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in properties.items() if name not in RESERVED}


class RocketCommand(BatchPublishCommand):
    """A message, or a batch of them, on its way through the middlewares to the producer."""

    def __init__(
        self,
        body: Any,
        /,
        *bodies: Any,
        tag: str | None = None,
        key: str | None = None,
        delay: Delay | None = None,
        timeout_s: float | None = None,
        request: Received | None = None,
        **common: Any,
    ) -> None:
        """`request` is what this replies to."""
        super().__init__(body, *bodies, **common)
        self.tag, self.key, self.delay = tag, key, delay
        self.timeout_s, self.request = timeout_s, request

    @classmethod
    def from_cmd(cls, cmd: PublishCommand, *, batch: bool = False, **more: Any) -> RocketCommand:
        """The same command with what RocketMQ needs besides: a handler has returned it.

        As a batch, each element of a list or tuple is a message.
        """
        body, bodies = cls._parse_bodies(cmd.body, batch=batch)
        return cls(
            body,
            *bodies,
            headers=cmd.headers,
            correlation_id=cmd.correlation_id,
            _publish_type=cmd.publish_type,
            **more,
        )


class RocketProducer:
    """FastStream's producer: it encodes bodies, and the SDK's producer sends them."""

    def __init__(self) -> None:
        self.codec: CodecProto = DefaultCodec()
        self._parser: Translate = self._parse
        self._decoder: Translate = self.codec.decode
        self.config: BrokerConfig | None = None
        self.sdk: Producer | None = None
        """Open while the broker is connected."""

    async def _parse(self, raw: Reply) -> RocketReply:
        return RocketReply(raw)

    async def publish(self, cmd: RocketCommand) -> SendResult:
        """Send a message, or the reply to a request."""
        message = self._message(cmd, cmd.body)
        if cmd.request is not None:
            return await self._open.reply(cmd.request, message.body)
        return await self._open.send(message, key=cmd.key)

    async def request(self, cmd: RocketCommand) -> Reply:
        """Send a message and wait for its consumer's reply."""
        message = self._message(cmd, cmd.body)
        return await self._open.request(message, timeout_s=cmd.timeout_s)

    async def publish_batch(self, cmd: RocketCommand) -> list[SendResult]:
        """Send messages to one queue, in as few requests as hold them."""
        messages = [self._message(cmd, body) for body in cmd.batch_bodies]
        return await self._open.send_batch(messages, key=cmd.key)

    @property
    def _open(self) -> Producer:
        if self.sdk is None:
            raise Closed("The broker is not connected. Use `async with` or `await broker.start()`.")
        return self.sdk

    def _message(self, cmd: RocketCommand, content: Any) -> Message:
        assert self.config is not None
        body, content_type = encode_message(content, self.config.fd_config._serializer)
        properties = {name: str(value) for name, value in cmd.headers.items()}
        if content_type is not None:
            properties[CONTENT_TYPE] = content_type
        if cmd.correlation_id is not None:
            properties[CORRELATION_ID] = cmd.correlation_id
        return Message(
            cmd.destination,
            body,
            tag=cmd.tag,
            keys=[cmd.key] if cmd.key else (),
            properties=properties,
            delay=cmd.delay,
        )
