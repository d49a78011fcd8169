"""Registering handlers: with a broker, or with a router that a broker includes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, overload

from faststream import AckPolicy
from faststream._internal.broker.registrator import Registrator
from faststream._internal.broker.router import BrokerRouter
from faststream._internal.configs import (
    PublisherSpecificationConfig,
    PublisherUsecaseConfig,
    SubscriberSpecificationConfig,
)
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream.exceptions import SetupError

from rockgate.sdk.consumer.delivery.listeners import BATCH_MAX
from rockgate.sdk.faststream.endpoints import (
    RocketBatchPublisher,
    RocketConfig,
    RocketPublisher,
    RocketSubscriber,
    SubscriberConfig,
    TopicPublished,
    TopicSubscribed,
)
from rockgate.sdk.message import check_group

RECORDS_MAX: Final = 32
"""As many as a pull brings by default."""


class RocketRegistrator(Registrator[Any, RocketConfig]):
    """What brokers and routers have in common."""

    def subscriber(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        group: str | None = None,
        batch: bool = False,
        max_records: int = RECORDS_MAX,
        ack_policy: AckPolicy = EMPTY,
        no_reply: bool = False,
        dependencies: Sequence[Any] = (),
        parser: Any = None,
        decoder: Any = None,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
    ) -> RocketSubscriber:
        """Have messages of a topic consumed by the functions that this decorates.

        `tags` and `sql` are as a consumer has them; `group` is one other than the router's or the
        broker's. With `batch` a handler gets a list of up to `max_records` bodies of one queue.
        """
        if not 1 <= max_records <= BATCH_MAX:
            raise SetupError(f"max_records must be 1 to {BATCH_MAX:,}, not {max_records:,}.")
        calls = CallsCollection[Any]()
        described = SubscriberSpecificationConfig(
            title_=title, description_=description, include_in_schema=include_in_schema
        )
        specification = TopicSubscribed(self._outer, described, calls)
        specification.name_of_topic = topic
        config = SubscriberConfig(
            _outer_config=self._outer,
            _ack_policy=ack_policy,
            no_reply=no_reply,
            name=topic,
            tags=tags,
            sql=sql,
            own_group=group,
            batch_max=max_records if batch else None,
        )
        subscriber = RocketSubscriber(config, specification, calls)
        super().subscriber(subscriber)
        subscriber.add_call(parser_=parser, decoder_=decoder, dependencies_=dependencies)
        return subscriber

    @overload
    def publisher(
        self,
        topic: str,
        *,
        tag: str | None = None,
        batch: Literal[False] = False,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> RocketPublisher: ...

    @overload
    def publisher(
        self,
        topic: str,
        *,
        tag: str | None = None,
        batch: Literal[True],
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> RocketBatchPublisher: ...

    def publisher(
        self,
        topic: str,
        *,
        tag: str | None = None,
        batch: bool = False,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> RocketPublisher:
        """Send what the decorated functions return to a topic.

        With `batch` they return a list, and each element is a message.
        """
        described = PublisherSpecificationConfig(
            title_=title,
            description_=description,
            schema_=schema,
            include_in_schema=include_in_schema,
        )
        specification = TopicPublished(self._outer, described)
        specification.name_of_topic = topic
        config = PublisherUsecaseConfig(_outer_config=self._outer)
        kind = RocketBatchPublisher if batch else RocketPublisher
        publisher = kind(config, specification, topic, tag)
        super().publisher(publisher)
        return publisher

    def include_router(
        self,
        router: Registrator[Any, Any],
        *,
        prefix: str = "",
        dependencies: Sequence[Any] = (),
        middlewares: Sequence[Any] = (),
        include_in_schema: bool | None = None,
    ) -> None:
        """Include the handlers of a router; its topics get this prefix as well."""
        if not isinstance(router, RocketRouter):
            raise SetupError(f"RocketBroker includes RocketRouter, not {type(router).__name__}.")
        super().include_router(
            router,
            prefix=prefix,
            dependencies=dependencies,
            middlewares=middlewares,
            include_in_schema=include_in_schema,
        )

    @property
    def _outer(self) -> Any:
        """The configuration as endpoints read it, through routers."""
        return self.config


class RocketRouter(RocketRegistrator, BrokerRouter[Any, RocketConfig]):
    """Handlers of a part of an application, for a broker or another router to include."""

    def __init__(
        self,
        prefix: str = "",
        *,
        group: str | None = None,
        ack_policy: AckPolicy = EMPTY,
        middlewares: Sequence[Any] = (),
        dependencies: Sequence[Any] = (),
        routers: Iterable[RocketRouter] = (),
        include_in_schema: bool | None = None,
    ) -> None:
        """`prefix` comes before the names of topics, and its handlers consume as `group`.

        What is not given here is inherited from the broker.
        """
        if group is not None:
            check_group(group)
        super().__init__(
            config=RocketConfig(
                prefix=prefix,
                group=group or "",
                ack_policy=ack_policy,
                broker_middlewares=middlewares,
                broker_dependencies=dependencies,
                include_in_schema=include_in_schema,
            ),
            handlers=(),
            routers=routers,
        )
