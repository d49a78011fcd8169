"""What a request needs: operations on topics, groups and the cluster, in the words of grants.

A row of a table of needs is a function from a request to its needs, made of the few kinds here.
Names are those of grants, which are the store's: `orders.paid` for what RocketMQ's clients call
`orders|paid`. A retry topic and a dead-letter topic are decided by their group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.gateway.transcode.names import to_store
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.system_topics import DLQ_PREFIX, RETRY_PREFIX

READ: Final = AclOperation.READ
WRITE: Final = AclOperation.WRITE
CREATE: Final = AclOperation.CREATE
DELETE: Final = AclOperation.DELETE
ALTER: Final = AclOperation.ALTER
DESCRIBE: Final = AclOperation.DESCRIBE
TOPIC: Final = AclResourceType.TOPIC
GROUP: Final = AclResourceType.GROUP
CLUSTER: Final = AclResourceType.CLUSTER

POP_RETRY_SEPARATOR: Final = "+"
"""Between group and topic in the name of a retry topic for pops: `%RETRY%group+topic`."""
_BY_CLUSTER: Final = frozenset({CREATE, ALTER})


class Need(NamedTuple):
    """An operation on a resource that must be granted."""

    operation: AclOperation
    resource_type: AclResourceType
    name: str

    @property
    def is_by_cluster(self) -> bool:
        """Whether the same operation on the cluster is enough."""
        return self.operation in _BY_CLUSTER and self.resource_type is not CLUSTER

    @property
    def refusal(self) -> str:
        """The answer to a client that may not do this."""
        resource = f"{self.resource_type.name.capitalize()}:{self.name}"
        return f"access {resource[:300]}; it needs {self.operation.name}"


class PlacedNeed(Need):
    """A need for something that the client has named by its place: it may not even know of it.

    So the refusal names no topic, and is the same where there is nothing.
    """

    __slots__ = ()

    @property
    def refusal(self) -> str:
        """The answer to a client that may not do this."""
        return "access what is at this place; it needs rights on its topic"


def placed(need: Need) -> PlacedNeed:
    """The same need, of what was found by its place."""
    return PlacedNeed(*need)


Needs: TypeAlias = Callable[[Command], Iterable[Need]]
"""The needs of a request; all of them must be granted."""


def of_topic(name: str, operation: AclOperation) -> Need:
    """The need for an operation on a topic that a client names."""
    if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return of_group(group_behind(name), _of_group_topic(operation))
    return Need(operation, TOPIC, to_store(name))


def group_behind(topic: str) -> str:
    """The group of a retry or dead-letter topic."""
    if topic.startswith(DLQ_PREFIX):
        return topic[len(DLQ_PREFIX) :]
    return topic[len(RETRY_PREFIX) :].partition(POP_RETRY_SEPARATOR)[0]


def of_group(name: str, operation: AclOperation) -> Need:
    """The need for an operation on a group that a client names."""
    return Need(operation, GROUP, to_store(name))


def of_cluster(operation: AclOperation) -> Need:
    """The need for an operation on the cluster."""
    return Need(operation, CLUSTER, CLUSTER_NAME)


def _of_group_topic(operation: AclOperation) -> AclOperation:
    # Whoever is in the group may write to it: its members give messages back.
    return READ if operation is WRITE else operation


# Rows


def nothing(command: Command) -> Iterable[Need]:
    """No needs: whoever is authenticated may ask."""
    return ()


def cluster(operation: AclOperation) -> Needs:
    """An operation on the cluster."""
    needs = (of_cluster(operation),)
    return lambda command: needs


def topic(operation: AclOperation, field: str = "topic") -> Needs:
    """An operation on the topic in a field, or in the header of a frequent request."""

    def needs(command: Command) -> Iterable[Need]:
        header = command.header
        name = command.fields.get(field, "") if header is None else header.topic
        return (of_topic(name, operation),)

    return needs


def group(operation: AclOperation, field: str = "consumerGroup") -> Needs:
    """An operation on the group in a field."""
    return lambda command: (of_group(command.fields.get(field, ""), operation),)


def topic_and_group(
    topic_operation: AclOperation, group_operation: AclOperation, field: str = "consumerGroup"
) -> Needs:
    """An operation on the topic, and one on the group in a field; or in a frequent header."""

    def needs(command: Command) -> Iterable[Need]:
        header, fields = command.header, command.fields
        if header is None:
            topic_name, group_name = fields.get("topic", ""), fields.get(field, "")
        else:
            topic_name, group_name = header.topic, header.consumer_group
        return of_topic(topic_name, topic_operation), of_group(group_name, group_operation)

    return needs


def if_given(needs: Needs, field: str) -> Needs:
    """The same, for requests that have the field."""
    return lambda command: needs(command) if command.fields.get(field) else ()


def all_of(*rows: Needs) -> Needs:
    """The needs of several rows."""

    def needs(command: Command) -> Iterator[Need]:
        for row in rows:
            yield from row(command)

    return needs
