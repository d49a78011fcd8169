"""Subscribers and publishers: where a handler's messages come from, and its results go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from faststream import AckPolicy, PublishCommand, PublishType, StreamMessage
from faststream._internal.configs import (
    BrokerConfig,
    ConfigComposition,
    PublisherUsecaseConfig,
    SubscriberUsecaseConfig,
)
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.parser import DefaultCodec
from faststream.exceptions import FeatureNotSupportedException
from faststream.message.message import AckStatus
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message, Operation, PublisherSpec, SubscriberSpec

from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.delivery.redelivery import DeadLetter, Retry
from rockgate.sdk.faststream.messages import (
    Decision,
    RocketBatch,
    RocketCommand,
    RocketMessage,
    RocketReply,
)
from rockgate.sdk.message import Delay
from rockgate.sdk.received import Received
from rockgate.sdk.results import SendResult


@dataclass(kw_only=True)
class RocketConfig(BrokerConfig):
    """The configuration of a broker or router, for everything that is registered with it."""

    group: str = ""


def nearest_group(config: Any) -> str:
    """The group of the innermost router that has one, else the broker's."""
    if not isinstance(config, ConfigComposition):
        return getattr(config, "group", "")
    return next(filter(None, map(nearest_group, reversed(config.configs))), "")


@dataclass(kw_only=True)
class SubscriberConfig(SubscriberUsecaseConfig):
    """What a subscriber consumes."""

    name: str
    """The name of its topic, without the prefixes of routers."""
    tags: str
    sql: str | None
    own_group: str | None
    batch_max: int | None
    """Set for handlers of batches."""

    @property
    def topic(self) -> str:
        """Its topic, with the prefixes of the routers that it is registered with."""
        return f"{self._outer_config.prefix}{self.name}"

    @property
    def group(self) -> str:
        """Its own, that of the nearest router that has one, or the broker's."""
        return self.own_group or nearest_group(self._outer_config)

    @property
    def ack_policy(self) -> AckPolicy:
        """By default a message whose handler fails is redelivered."""
        given: AckPolicy
        for given in (self._ack_policy, self._outer_config.ack_policy):
            if given is not EMPTY:
                return given
        return AckPolicy.NACK_ON_ERROR


class TopicSubscribed(SubscriberSpecification[Any, Any]):
    """A subscriber's part of the AsyncAPI document."""

    name_of_topic: str

    @property
    def topic(self) -> str:
        """With the prefixes of routers."""
        return f"{self._outer_config.prefix}{self.name_of_topic}"

    @property
    def channel_labels(self) -> list[str]:
        """Its topic."""
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """One channel."""
        payload = resolve_payloads(self.get_payloads())
        message = Message(title=f"{self.name}:Message", payload=payload)
        operation = Operation(message=message, bindings=None)
        return {
            self.name: SubscriberSpec(
                address=self.topic,
                description=self.description,
                operation=operation,
                bindings=None,
            )
        }


class RocketSubscriber(SubscriberUsecase[Any]):
    """The handlers of one topic."""

    def __init__(self, config: SubscriberConfig, specification: Any, calls: Any) -> None:
        self._codec = DefaultCodec()
        config.parser, config.decoder = self._parse, self._codec.decode
        if config.batch_max is not None:
            config.parser, config.decoder = self._parse_batch, self.decode_batch
        super().__init__(config, specification, calls)
        self.config = config
        self.consumer: Consumer | None = None
        """Where its messages come from, while the broker runs."""
        self._decisions: dict[Received | tuple[Received, ...], Decision] = {}

    async def start(self) -> None:
        """Prepare for messages, which the broker's consumer delivers."""
        # Decided by the base class when a handler is registered; a router has no broker then.
        self.ack_policy = self.config.ack_policy
        self._SubscriberUsecase__auto_ack_disabled = self.config.auto_ack_disabled
        await super().start()
        self._post_start()

    async def stop(self) -> None:
        """Stop pulling this topic, and wait for running handlers."""
        if self.consumer is not None and self.consumer.queues:
            self.consumer.pause(self.config.topic)
        await super().stop()

    def listen(self, consumer: Consumer) -> None:
        """Register this subscriber as the listener of its topic."""
        wanted = self.config
        if wanted.batch_max is None:
            consumer.on(wanted.topic, wanted.tags, sql=wanted.sql)(self.deliver)
        else:
            on = consumer.on(wanted.topic, wanted.tags, sql=wanted.sql, batch=wanted.batch_max)
            on(self.deliver_batch)
        self.consumer = consumer

    async def deliver(self, message: Received) -> None:
        """The consumer's listener for single messages."""
        await self._deliver(message)

    async def deliver_batch(self, messages: Sequence[Received]) -> None:
        """The same for batches."""
        await self._deliver(tuple(messages))

    async def _deliver(self, message: Received | tuple[Received, ...]) -> None:
        """Return if this was acknowledged, and raise if not.

        Without a decision it is redelivered: its handler was stopped, or did not decide.
        """
        decision = self._decisions[message] = Decision()
        try:
            await self.consume(message)
        finally:
            del self._decisions[message]
        if decision.status is AckStatus.REJECTED:
            raise DeadLetter
        if decision.status is not AckStatus.ACKED:
            raise Retry(after=decision.after)

    def get_log_context(self, message: StreamMessage[Any] | None) -> dict[str, str]:
        """The extra fields of its log records."""
        return {"topic": self.config.topic, "message_id": getattr(message, "message_id", "")}

    async def get_one(self, *, timeout: float = 5) -> RocketMessage | None:  # noqa: ASYNC109 # FastStream's name
        """Not supported."""
        raise FeatureNotSupportedException("Poll with rockgate.sdk.LitePullConsumer instead.")

    def __aiter__(self) -> AsyncIterator[RocketMessage]:
        raise FeatureNotSupportedException("Iterate over rockgate.sdk.Consumer instead.")

    async def _parse(self, message: Received) -> RocketMessage:
        return RocketMessage(message, self._decisions.get(message) or Decision())

    async def _parse_batch(self, messages: tuple[Received, ...]) -> RocketBatch:
        return RocketBatch(messages, self._decisions.get(messages) or Decision())

    async def decode_batch(self, batch: StreamMessage[tuple[Received, ...]]) -> list[Any]:
        """The decoded bodies. FastStream recognizes a batch's decoder by this name."""
        return [
            await self._codec.decode(RocketMessage(each, Decision())) for each in batch.raw_message
        ]

    def _make_response_publisher(self, message: StreamMessage[Any]) -> Iterable[ReplyPublisher]:
        return (ReplyPublisher(self._outer_config.producer, message.raw_message),)


class ReplyPublisher(FakePublisher):
    """Sends what a handler returns to the client that waits for a reply."""

    def __init__(self, producer: Any, request: Received) -> None:
        super().__init__(producer=producer)
        self._request = request

    def patch_command(self, cmd: PublishCommand) -> RocketCommand:
        """The reply to this request."""
        return RocketCommand.from_cmd(super().patch_command(cmd), request=self._request)


class TopicPublished(PublisherSpecification[Any, Any]):
    """A publisher's part of the AsyncAPI document."""

    name_of_topic: str

    @property
    def topic(self) -> str:
        """With the prefixes of routers."""
        return f"{self._outer_config.prefix}{self.name_of_topic}"

    @property
    def name(self) -> str:
        """The name of its channel."""
        title: str | None = self.config.title_
        return title or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """One channel."""
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        message = Message(title=f"{self.name}:Message", payload=payload)
        operation = Operation(message=message, bindings=None)
        return {
            self.name: PublisherSpec(
                address=self.topic,
                description=self.config.description_,
                operation=operation,
                bindings=None,
            )
        }


class RocketPublisher(PublisherUsecase):
    """Where results of handlers are sent; it can also be called directly."""

    def __init__(
        self, config: PublisherUsecaseConfig, specification: Any, topic: str, tag: str | None
    ) -> None:
        super().__init__(config, specification)
        self._name, self.tag = topic, tag

    @property
    def topic(self) -> str:
        """Where it sends to, with the prefixes of routers."""
        return f"{self._outer_config.prefix}{self._name}"

    async def publish(
        self,
        message: Any,
        /,
        *,
        key: str | None = None,
        delay: Delay | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> SendResult:
        """Send a message to its topic."""
        cmd = RocketCommand(
            message,
            key=key,
            delay=delay,
            headers=dict(headers or {}),
            correlation_id=correlation_id,
            _publish_type=PublishType.PUBLISH,
        )
        return await self._send(cmd, ())

    async def request(self, message: Any, /, *, correlation_id: str | None = None) -> RocketReply:
        """Send a message to its topic and wait for its consumer's reply."""
        cmd = RocketCommand(
            message,
            tag=self.tag,
            destination=self.topic,
            correlation_id=correlation_id,
            _publish_type=PublishType.REQUEST,
        )
        reply: RocketReply = await self._basic_request(cmd, producer=self._outer_config.producer)
        return reply

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        await self._send(RocketCommand.from_cmd(cmd), _extra_middlewares)

    async def _send(self, cmd: RocketCommand, middlewares: Iterable[Any]) -> SendResult:
        cmd.destination, cmd.tag = self.topic, self.tag
        result: SendResult = await self._basic_publish(
            cmd, producer=self._outer_config.producer, _extra_middlewares=middlewares
        )
        return result


class RocketBatchPublisher(RocketPublisher):
    """Where results of handlers are sent as batches: each element of a list is a message."""

    async def publish(
        self,
        *messages: Any,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> list[SendResult]:
        """Send messages to one queue of its topic; those of one `key` always to the same."""
        cmd = RocketCommand(
            *(messages or (None,)),
            key=key,
            headers=dict(headers or {}),
            correlation_id=correlation_id,
            _publish_type=PublishType.PUBLISH,
        )
        return await self._send_batch(cmd, ())

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        await self._send_batch(RocketCommand.from_cmd(cmd, batch=True), _extra_middlewares)

    async def _send_batch(self, cmd: RocketCommand, middlewares: Iterable[Any]) -> list[SendResult]:
        cmd.destination, cmd.tag = self.topic, self.tag
        results: list[SendResult] = await self._basic_publish_batch(
            cmd, producer=self._outer_config.producer, _extra_middlewares=middlewares
        )
        return results
