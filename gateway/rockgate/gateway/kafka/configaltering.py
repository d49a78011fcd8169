"""Changing the configs of resources: what AlterConfigs and IncrementalAlterConfigs have in common.

Only topics can be changed. The server's own settings are read when it starts, and whoever tries is
told which setting to change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from operator import attrgetter
from typing import Generic, Protocol, TypeAlias, TypeVar

from rockgate.gateway.kafka.brokerconfigs import BrokerConfig
from rockgate.gateway.kafka.errors import RequestError, explain
from rockgate.gateway.kafka.listing import Listing
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreError
from rockgate.store.topic import Topic
from rockgate.store.topics import Topics

CHANGE_COST = 5
_PARTITIONS_PER_COST = 50


class ResourceType(IntEnum):
    """What has configs, as Kafka numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class NamedConfig(Protocol):
    """A config in a request."""

    name: str


class NamedResource(Protocol):
    """A resource in a request."""

    resource_type: int
    resource_name: str


class Resource(NamedResource, Protocol):
    """A resource that is to be altered."""

    @property
    def configs(self) -> Sequence[NamedConfig]:
        """What shall become of it."""
        ...


Asked = TypeVar("Asked", bound=Resource)
Result = TypeVar("Result")
Plan = Callable[[Topic, Asked], Mapping[str, str]]
"""The configs that a topic shall have, or RequestError."""
Answer = Callable[[Asked, ErrorCode, str | None], Result]
Key: TypeAlias = tuple[int, str]
KEY: Callable[[NamedResource], Key] = attrgetter("resource_type", "resource_name")
"""What two mentions of one resource have in common."""


class Alterable:
    """Finds what may be altered."""

    def __init__(
        self, *, listing: Listing, node_id: int, broker_configs: Mapping[str, BrokerConfig]
    ) -> None:
        self._listing = listing
        self._node_id = node_id
        self._broker_configs = broker_configs

    def topic(self, asked: Resource) -> Topic:
        """The topic to be altered, or RequestError."""
        if asked.resource_type == ResourceType.BROKER:
            self._refuse_broker(asked)
        if asked.resource_type != ResourceType.TOPIC:
            raise RequestError(ErrorCode.INVALID_REQUEST, unserved(asked.resource_type))
        if not asked.resource_name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "a topic resource has a name")
        topic = self._listing.find(asked.resource_name)
        if topic is None:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic of this name"
            )
        if topic.is_internal:
            raise RequestError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {topic.name} is the server's own"
            )
        return topic

    def _refuse_broker(self, asked: Resource) -> None:
        check_broker(asked.resource_name, self._node_id)
        told = "the server's settings are read when it starts"
        for given in asked.configs:
            config = self._broker_configs.get(given.name)
            if config is not None and config.setting is not None:
                told += f"; set {config.setting!r} in its configuration and start it again"
                break
        raise RequestError(ErrorCode.INVALID_REQUEST, told)


class Altering(Generic[Asked, Result]):
    """A slice of resources to be altered."""

    def __init__(
        self,
        *,
        topics: Topics,
        alterable: Alterable,
        plan: Plan[Asked],
        answer: Answer[Asked, Result],
        repeated: AbstractSet[Key],
        is_dry: bool,
    ) -> None:
        self._topics = topics
        self._alterable = alterable
        self._plan = plan
        self._answer = answer
        self._repeated = repeated
        self._is_dry = is_dry
        self._outcomes: list[tuple[Asked, RequestError | None]] = []
        self._configs: dict[Topic, Mapping[str, str]] = {}

    def take(self, asked: Asked, /) -> int:
        """Check what a resource shall become."""
        try:
            if KEY(asked) in self._repeated:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "the resource is named more than once"
                )
            topic = self._alterable.topic(asked)
            _check_once(asked.configs)
            self._configs[topic] = self._plan(topic, asked)
        except RequestError as error:
            self._outcomes.append((asked, error))
            return 0
        self._outcomes.append((asked, None))
        return CHANGE_COST + topic.queue_count // _PARTITIONS_PER_COST

    def finish(self) -> Sequence[Result]:
        """Alter all that passed."""
        code, reason = ErrorCode.NONE, None
        if not self._is_dry:
            try:
                self._topics.set_config(self._configs)
            except StoreError as error:
                code, reason = explain(error)
        return [
            self._answer(asked, code, reason)
            if error is None
            else self._answer(asked, error.code, error.reason)
            for asked, error in self._outcomes
        ]


def unserved(resource_type: int) -> str:
    """Why a resource is not looked at."""
    try:
        kind = ResourceType(resource_type).name.lower().replace("_", " ")
    except ValueError:
        return f"there is no resource type {resource_type}"
    return f"resources of type {kind} have no configs here"


def check_broker(name: str, node_id: int) -> None:
    """INVALID_REQUEST unless this is the broker, or all of them, that is meant."""
    if name not in ("", str(node_id)):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"there is no broker {name[:40]!r}, only {node_id}"
        )


def _check_once(configs: Iterable[NamedConfig]) -> None:
    counts = Counter(config.name for config in configs)
    for name, count in counts.items():
        if count > 1:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"config {name[:80]!r} is given more than once"
            )
