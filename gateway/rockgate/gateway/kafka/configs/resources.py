"""The resources with configs: topics, groups, this node and its loggers.

Each type of resource lists its configs and their values, and applies changes. The error of an
attempt to change a setting that is read when the server starts names it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.checks import CLIENT_METRICS, GROUPS, TOPICS, ConfigTable
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.now import Now
from rockgate.gateway.kafka.topics.catalog import Refusals, TopicCatalog, TopicView
from rockgate.protocol.kafka.errors import ErrorCode

CHANGE_COST = 5
_PARTITIONS_PER_COST = 50


class ResourceType(IntEnum):
    """The types of resources with configs, as Kafka numbers them."""

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
        """The changes to its configs."""
        ...


Key: TypeAlias = tuple[int, str]
KEY: Callable[[NamedResource], Key] = attrgetter("resource_type", "resource_name")
"""Identifies a resource in a request."""


class SavedConfigs(Protocol):
    """Configs of resources that have no other record, by type and name."""

    def of(self, type_: int, name: str) -> Mapping[str, str]:
        """The configs set for a resource."""
        ...

    def names(self, type_: int) -> Iterator[str]:
        """The resources of a type with configs set; valid until the next change."""
        ...

    def put(self, type_: int, configs: Mapping[str, Mapping[str, str]]) -> Now[Refusals]:
        """Replace the configs of some resources; RequestError if none of them can be changed."""
        ...


class Resources(Protocol):
    """All resources of one type."""

    @property
    def table(self) -> ConfigTable[Any]:
        """The configs they can have."""
        ...

    def config(self, name: str) -> Mapping[str, str]:
        """The configs set for one of them, or RequestError."""
        ...

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect of a config, given the configs set."""
        ...

    def cost(self, name: str) -> int:
        """The cost of changing one of them."""
        ...

    def put(self, configs: Mapping[str, Mapping[str, str]]) -> Now[Refusals]:
        """Replace the configs of some of them; RequestError if none of them can be changed."""
        ...


class TopicResources:
    """Topics, as resources that have configs."""

    table = TOPICS

    def __init__(self, *, catalog: TopicCatalog, defaults: TopicDefaults) -> None:
        self._catalog = catalog
        self._defaults = defaults

    def config(self, name: str) -> Mapping[str, str]:
        """The configs set for a topic."""
        return self._find(name).config

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect for a topic."""
        return self._defaults.text(config, name)

    def cost(self, name: str) -> int:
        """Higher for topics of many partitions."""
        return CHANGE_COST + self._find(name).queue_count // _PARTITIONS_PER_COST

    def put(self, configs: Mapping[str, Mapping[str, str]]) -> Now[Refusals]:
        """Alter topics, all of them at once."""
        return self._catalog.alter(configs)

    def _find(self, name: str) -> TopicView:
        if not name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "A topic resource requires a name.")
        topic = self._catalog.find(name)
        if topic is None:
            if not names.is_legal(name):
                raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid.")
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist.")
        if topic.is_internal:
            raise RequestError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Topic '{topic.name}' is an internal topic."
            )
        return topic


class SavedResources:
    """Resources that have no record but their configs, of one type; they need not exist."""

    def __init__(self, type_: ResourceType, table: ConfigTable[Any], configs: SavedConfigs) -> None:
        self._type = type_
        self.table = table
        self._configs = configs

    def config(self, name: str) -> Mapping[str, str]:
        """The configs set for one."""
        check_named(self._type, name)
        return self._configs.of(self._type, name)

    def text(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect for one."""
        return config.get(name, self.table.known(name).default)

    def cost(self, name: str) -> int:
        """The same for all."""
        return CHANGE_COST

    def put(self, configs: Mapping[str, Mapping[str, str]]) -> Now[Refusals]:
        """Save the configs."""
        return self._configs.put(self._type, configs)


def group_resources(configs: SavedConfigs) -> SavedResources:
    """Groups, as resources that have configs."""
    return SavedResources(ResourceType.GROUP, GROUPS, configs)


def client_metrics_resources(configs: SavedConfigs) -> SavedResources:
    """Client metrics subscriptions, which are nothing but their configs."""
    return SavedResources(ResourceType.CLIENT_METRICS, CLIENT_METRICS, configs)


def check_named(type_: ResourceType, name: str) -> None:
    """INVALID_REQUEST for a resource without a name."""
    if not name:
        kind = type_.name.lower().replace("_", " ")
        raise RequestError(ErrorCode.INVALID_REQUEST, f"A {kind} resource requires a name.")


class Alterable:
    """Finds the resources that can be altered."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        resources: Mapping[ResourceType, Resources],
        node_id: int,
        broker_configs: Mapping[str, BrokerConfig],
    ) -> None:
        self._catalog = catalog
        self._resources: dict[int, Resources] = dict(resources.items())
        self._node_id = node_id
        self._broker_configs = broker_configs

    def learn(self, asked: Iterable[NamedResource]) -> Awaitable[None] | None:
        """Learn the topics among these, if some of them must be requested."""
        topic = ResourceType.TOPIC
        return self._catalog.learn(
            each.resource_name for each in asked if each.resource_type == topic
        )

    def of(self, asked: Resource) -> Resources:
        """All resources of the type of one, or RequestError."""
        found = self._resources.get(asked.resource_type)
        if asked.resource_type == ResourceType.BROKER:
            check_broker(asked.resource_name, self._node_id)
            if found is None:
                self._refuse_broker(asked)
        if found is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, unserved(asked.resource_type))
        if asked.resource_type == ResourceType.BROKER_LOGGER:
            check_this_broker(asked.resource_name, self._node_id)
        return found

    def _refuse_broker(self, asked: Resource) -> None:
        reason = "Broker configs cannot be changed at run time."
        for given in asked.configs:
            config = self._broker_configs.get(given.name)
            if config is not None and config.setting is not None:
                reason += f" Set {config.setting!r} in the configuration and restart the server."
                break
        raise RequestError(ErrorCode.INVALID_REQUEST, reason)


def unserved(resource_type: int) -> str:
    """Why a resource is rejected."""
    try:
        kind = ResourceType(resource_type).name.lower().replace("_", " ")
    except ValueError:
        return f"Unknown resource type {resource_type}."
    return f"Resource type {kind} has no configs."


def check_broker(name: str, node_id: int) -> None:
    """INVALID_REQUEST unless the name is this broker's, or means all brokers."""
    if name not in ("", str(node_id)):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {name[:40]!r} does not exist; this broker is {node_id}.",
        )


def check_this_broker(name: str, node_id: int) -> None:
    """INVALID_REQUEST unless the name is this node's id."""
    if not name:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "A broker logger resource requires a broker id."
        )
    check_broker(name, node_id)
