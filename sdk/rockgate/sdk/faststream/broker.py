"""The broker: what an application registers its handlers with, opens and closes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from faststream import AckPolicy, PublishType
from faststream._internal.broker import BrokerUsecase
from faststream._internal.constants import EMPTY
from faststream._internal.logger.params_storage import ManualLoggerStorage
from faststream._internal.logger.state import LoggerState
from faststream.exceptions import SetupError
from faststream.specification.schema import BrokerSpec

from rockgate.sdk.admin.admin import Admin
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings
from rockgate.sdk.errors import SdkError
from rockgate.sdk.faststream.endpoints import RocketConfig, RocketSubscriber
from rockgate.sdk.faststream.messages import RocketCommand, RocketProducer, RocketReply
from rockgate.sdk.faststream.registrator import RocketRegistrator, RocketRouter
from rockgate.sdk.message import Delay, check_group
from rockgate.sdk.producer.producer import Producer
from rockgate.sdk.results import SendResult

GRACEFUL_S: Final = 15.0

_log: Final = logging.getLogger(__name__)


class RocketBroker(RocketRegistrator, BrokerUsecase[Any, Producer, RocketConfig]):
    """Name servers, a group, and the handlers that consume as members of it."""

    _connection: Producer | None

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        settings: ConsumerSettings | None = None,
        namespace: str = "",
        timeout_s: float = 3.0,
        ack_policy: AckPolicy = EMPTY,
        middlewares: Sequence[Any] = (),
        dependencies: Sequence[Any] = (),
        routers: Sequence[RocketRouter] = (),
        graceful_timeout: float = GRACEFUL_S,
        logger: Any = _log,
        log_level: int = logging.INFO,
        description: str | None = None,
    ) -> None:
        """`settings` are those of every consumer; `timeout_s` is a send's.

        A message whose handler fails is redelivered (`AckPolicy.NACK_ON_ERROR`) unless `ack_policy`
        says otherwise. `graceful_timeout` is how long handlers may take when the broker stops.
        """
        check_group(group)
        self.group = group
        self._name_servers = name_servers
        self._settings = settings
        self._namespace = namespace
        self._timeout_s = timeout_s
        self._graceful_s = graceful_timeout
        self._rocket = RocketProducer()
        self._consumers: dict[str, Consumer] = {}
        config = RocketConfig(
            group=group,
            producer=self._rocket,
            broker_middlewares=middlewares,
            broker_dependencies=dependencies,
            ack_policy=ack_policy,
            graceful_timeout=graceful_timeout,
            logger=LoggerState(log_level, ManualLoggerStorage(logger)),
            extra_context={"broker": self},
        )
        self._rocket.config = config
        servers = [name_servers] if isinstance(name_servers, str) else list(name_servers)
        super().__init__(
            config=config,
            routers=routers,
            specification=BrokerSpec(
                url=[f"rocketmq://{each}" for part in servers for each in part.split(";")],
                protocol="rocketmq",
                protocol_version=None,
                description=description,
                tags=(),
                security=None,
            ),
        )

    # Life

    async def start(self) -> None:
        """Connect, and start consuming."""
        try:
            await self.connect()
            await super().start()
            self._consumers = self._made_consumers()
            for consumer in self._consumers.values():
                await consumer.open()
        except BaseException:
            await self.stop()
            raise

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Let handlers finish, commit and leave the groups; unfinished messages are redelivered."""
        consumers, self._consumers = self._consumers, {}
        closing = (each.close(self._graceful_s) for each in consumers.values())
        await asyncio.gather(*closing)
        await super().stop(exc_type, exc_val, exc_tb)
        producer, self._connection, self._rocket.sdk = self._connection, None, None
        if producer is not None:
            await producer.close()

    async def _connect(self) -> Producer:
        producer = Producer(
            self._name_servers,
            group=self.group,
            namespace=self._namespace,
            timeout_s=self._timeout_s,
        )
        self._rocket.sdk = await producer.open()
        return producer

    def _made_consumers(self) -> dict[str, Consumer]:
        """One for each group: members of a group must agree on what they subscribe to."""
        consumers: dict[str, Consumer] = {}
        topics: set[tuple[str, str]] = set()
        for subscriber in self.subscribers:
            assert isinstance(subscriber, RocketSubscriber)
            wanted = subscriber.config
            if (wanted.group, wanted.topic) in topics:
                raise SetupError(
                    f"Group {wanted.group} has two subscribers of topic {wanted.topic}. "
                    "Give one of them another group, or decorate both functions with one."
                )
            topics.add((wanted.group, wanted.topic))
            consumer = consumers.get(wanted.group)
            if consumer is None:
                consumer = consumers[wanted.group] = Consumer(
                    self._name_servers,
                    group=wanted.group,
                    settings=self._settings,
                    namespace=self._namespace,
                )
            subscriber.listen(consumer)
        return consumers

    async def ping(self, timeout: float | None = 3.0) -> bool:  # noqa: ASYNC109 # FastStream's name
        """Whether a name server responds."""
        if self._connection is None:
            return False
        try:
            async with asyncio.timeout(timeout), Admin(client=self._connection.client) as admin:
                await admin.brokers.all()
        except (SdkError, TimeoutError):
            return False
        return True

    # Sending

    async def publish(
        self,
        message: Any,
        topic: str,
        *,
        tag: str | None = None,
        key: str | None = None,
        delay: Delay | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> SendResult:
        """Send a message: bytes and text as they are, anything else as JSON."""
        cmd = RocketCommand(
            message,
            destination=topic,
            tag=tag,
            key=key,
            delay=delay,
            headers=dict(headers or {}),
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.PUBLISH,
        )
        result: SendResult = await self._basic_publish(cmd, producer=self.config.producer)
        return result

    async def publish_batch(
        self,
        *messages: Any,
        topic: str,
        tag: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> list[SendResult]:
        """Send messages to one queue of a topic; those of one `key` always to the same."""
        cmd = RocketCommand(
            *(messages or (None,)),
            destination=topic,
            tag=tag,
            key=key,
            headers=dict(headers or {}),
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.PUBLISH,
        )
        results: list[SendResult] = await self._basic_publish_batch(
            cmd, producer=self.config.producer
        )
        return results

    async def request(
        self,
        message: Any,
        topic: str,
        *,
        timeout: float = 3.0,  # noqa: ASYNC109 # FastStream's name
        tag: str | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> RocketReply:
        """Send a message and wait for its consumer's reply."""
        cmd = RocketCommand(
            message,
            destination=topic,
            tag=tag,
            timeout_s=timeout,
            headers=dict(headers or {}),
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.REQUEST,
        )
        reply: RocketReply = await self._basic_request(cmd, producer=self.config.producer)
        return reply
