"""Configs of topics, brokers and groups on the wire."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import NotServed, Refused
from rockgate.cli.client.kafka.view import decoded
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rockgate.protocol.kafka.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """The types of resources with configs, by the number on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @property
    def word(self) -> str:
        """As users write it."""
        return self.name.lower().replace("_", "-")


SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "cluster default",
    4: "server",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
"""Where a value comes from, by the number on the wire, in the words of a table."""
DEFAULT: Final = "default"
TYPES: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}


class Change(IntEnum):
    """What to do with a config, by the number on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(NamedTuple):
    """A resource with configs: a topic, a broker by number ("" for all brokers), a group."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        if self.kind is ResourceType.BROKER and not self.name:
            return "default for all brokers"
        return f"{self.kind.word} {self.name}"


class Config(NamedTuple):
    """One config in effect; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    type: str
    documentation: str | None
    synonyms: tuple[tuple[str, str | None, str], ...]

    @property
    def is_own(self) -> bool:
        """Whether it was set explicitly: here, or by the server's file, environment or flags."""
        return self.source != DEFAULT


async def describe(
    cluster: Cluster,
    resources: Sequence[Resource],
    *,
    with_documentation: bool = False,
) -> dict[Resource, list[Config] | Refused]:
    """All configs of the resources, sorted by name."""
    found: dict[Resource, list[Config] | Refused] = {}
    for broker, asked in (await _at_brokers(cluster, resources)).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=each.kind, resource_name=each.name, configuration_keys=None
                )
                for each in asked
            ],
            include_synonyms=True,
            include_documentation=with_documentation,
        )
        answer = await broker.ask(request, DescribeConfigsResponse)
        for result in decoded(answer.results):
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            if result.error_code:
                found[resource] = Refused(
                    result.error_code, result.error_message, what=str(resource)
                )
                continue
            found[resource] = sorted(
                Config(
                    name=each.name,
                    value=each.value,
                    source=SOURCES.get(each.config_source, "unknown"),
                    is_read_only=each.read_only,
                    is_sensitive=each.is_sensitive,
                    type=TYPES.get(each.config_type, "unknown"),
                    documentation=each.documentation,
                    synonyms=tuple(
                        (other.name, other.value, SOURCES.get(other.source, "unknown"))
                        for other in each.synonyms
                    ),
                )
                for each in decoded(result.configs)
            )
    return {each: found[each] for each in resources if each in found}


async def alter(
    cluster: Cluster,
    resource: Resource,
    changes: Sequence[tuple[str, Change, str | None]],
    *,
    is_dry_run: bool = False,
) -> Refused | None:
    """Change some configs of a resource and leave the others as they are."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.kind,
                resource_name=resource.name,
                configs=[
                    AlterableConfig(name=name, config_operation=change, value=value)
                    for name, change, value in changes
                ],
            )
        ],
        validate_only=is_dry_run,
    )
    ((broker, _),) = (await _at_brokers(cluster, [resource])).items()
    answer = await broker.ask(request, IncrementalAlterConfigsResponse)
    for each in decoded(answer.responses):
        if each.error_code:
            return Refused(each.error_code, each.error_message, what=str(resource))
    return None


async def resources(cluster: Cluster, kinds: Sequence[ResourceType]) -> list[Resource]:
    """The resources of these types; a server that cannot list them is asked for topics only."""
    broker = await cluster.anyone()
    if await broker.serves(ApiKey.LIST_CONFIG_RESOURCES, version_min=1):
        request = ListConfigResourcesRequest(resource_types=[int(kind) for kind in kinds])
        answer = await broker.ask(request, ListConfigResourcesResponse)
        if answer.error_code:
            raise Refused(answer.error_code, what="listing resources")
        known = {int(kind) for kind in ResourceType}
        return sorted(
            Resource(ResourceType(each.resource_type), each.resource_name)
            for each in decoded(answer.config_resources)
            if each.resource_type in known
        )
    view = await cluster.metadata()
    found = [
        Resource(ResourceType.TOPIC, name) for name in view.topics if ResourceType.TOPIC in kinds
    ]
    found += [
        Resource(ResourceType.BROKER, str(n)) for n in view.nodes if ResourceType.BROKER in kinds
    ]
    if not {ResourceType.TOPIC, ResourceType.BROKER} & set(kinds):
        raise NotServed("The server cannot list resources of this type")
    return sorted(found)


async def _at_brokers(
    cluster: Cluster, resources: Sequence[Resource]
) -> dict[Broker, list[Resource]]:
    """The broker to ask for each: a broker for itself, the controller for everything else."""
    controller = await cluster.controller()
    asked: dict[Broker, list[Resource]] = {}
    for each in resources:
        is_own = (
            each.kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and each.name.isdigit()
        )
        broker = cluster.node(int(each.name)) if is_own else controller
        asked.setdefault(broker, []).append(each)
    return asked
