"""ACLs as the command line says them: in the words of Kafka's kafka-acls.sh."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType, Grant
from rockgate.gateway.security.principal import Principal

if TYPE_CHECKING:
    from rockgate.cli.client.admin.acls import AclFilter

_WORDS = {
    operation.name.title().replace("_", ""): operation
    for operation in AclOperation
    if operation not in (AclOperation.UNKNOWN, AclOperation.ANY)
}
_BY_WORD = {word.lower(): operation for word, operation in _WORDS.items()}


class Pattern(StrEnum):
    """How names of resources are compared."""

    LITERAL = "literal"
    PREFIXED = "prefixed"
    MATCH = "match"
    ANY = "any"


class Decision(StrEnum):
    """What an ACL decides."""

    ALLOW = "allow"
    DENY = "deny"


Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="NAME",
        help="Topic, * for all; repeatable.",
        autocompletion=completion.topics,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Consumer group, * for all; repeatable.",
        autocompletion=completion.groups,
    ),
]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster.")]
TransactionalIds = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="Transactional id; repeatable."),
]
Tokens = Annotated[
    list[str] | None,
    typer.Option("--delegation-token", metavar="ID", help="Delegation token; repeatable."),
]
Users = Annotated[
    list[str] | None,
    typer.Option(
        "--user-principal",
        metavar="User:NAME",
        help="Owner of delegation tokens; repeatable.",
    ),
]
Prefixed = Annotated[
    bool, typer.Option("--prefixed", help="All resources whose names begin with the given ones.")
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation", metavar="OPERATION", help="Read, Write, Describe, … or All; repeatable."
    ),
]
Principals = Annotated[
    list[str] | None,
    typer.Option("--principal", metavar="User:NAME", help="Only of this principal; repeatable."),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Client address, * for all; repeatable."),
]
Permission = Annotated[
    Decision | None, typer.Option(help="Only ACLs that allow, or that deny.", show_default=False)
]


def resources(
    *,
    topic: Sequence[str] | None,
    group: Sequence[str] | None,
    is_cluster: bool,
    transactional_id: Sequence[str] | None,
    delegation_token: Sequence[str] | None,
    user_principal: Sequence[str] | None,
) -> list[tuple[AclResourceType, str]]:
    """The resources that the options name."""
    named = {
        AclResourceType.TOPIC: topic,
        AclResourceType.GROUP: group,
        AclResourceType.CLUSTER: [CLUSTER_NAME] if is_cluster else None,
        AclResourceType.TRANSACTIONAL_ID: transactional_id,
        AclResourceType.DELEGATION_TOKEN: delegation_token,
        AclResourceType.USER: user_principal,
    }
    found = [(type_, name) for type_, names in named.items() for name in names or ()]
    if any(not name for _, name in found):
        runner.usage("A resource has an empty name. Give * for all resources of a type.")
    return found


def operations(given: Sequence[str] | None) -> list[AclOperation]:
    """The operations by Kafka's names, in any case and with or without separators."""
    return [runner.checked("--operation", _operation, each) for each in given or ()]


def principals(given: Sequence[str] | None, flag: str) -> list[str]:
    """Principals, which have a type."""
    return [runner.checked(flag, _principal, each) for each in given or ()]


def filters(
    *,
    resources: Sequence[tuple[AclResourceType, str]],
    pattern: Pattern,
    principals: Sequence[str],
    hosts: Sequence[str],
    operations: Sequence[AclOperation],
    permission: Decision | None,
) -> list[AclFilter]:
    """A filter for each combination of what was given; what was not given may be anything."""
    from rockgate.cli.client.admin.acls import AclFilter
    from rockgate.gateway.security import grants

    wanted = grants.Permission[permission.name] if permission else grants.Permission.ANY
    where: Sequence[tuple[AclResourceType, str | None]]
    where = resources or [(AclResourceType.ANY, None)]
    who: Sequence[str | None] = principals or [None]
    whence: Sequence[str | None] = hosts or [None]
    return [
        AclFilter(
            resource_type=type_,
            resource_name=name,
            pattern_type=grants.PatternType[pattern.name],
            principal=principal,
            host=host,
            operation=operation,
            permission=wanted,
        )
        for type_, name in where
        for principal in who
        for host in whence
        for operation in operations or [AclOperation.ANY]
    ]


def row(grant: Grant) -> tuple[str, ...]:
    """A row of a table."""
    pattern = " (prefixed)" if grant.pattern_type == grant.pattern_type.PREFIXED else ""
    return (
        grant.principal,
        grant.permission.name.title(),
        word(grant.operation),
        grant.resource_type.name.lower().replace("_", " "),
        f"{grant.resource_name}{pattern}",
        grant.host,
    )


COLUMNS = ("principal", "decision", "operation", "on", "name", "from host")


def fields(grant: Grant) -> dict[str, Any]:
    """As programs see it, with Kafka's names."""
    return {
        "principal": grant.principal,
        "permission": grant.permission.name,
        "operation": grant.operation.name,
        "resource_type": grant.resource_type.name,
        "resource_name": grant.resource_name,
        "pattern_type": grant.pattern_type.name,
        "host": grant.host,
    }


def word(operation: AclOperation) -> str:
    """An operation as users write it."""
    return operation.name.title().replace("_", "")


def _operation(text: str) -> AclOperation:
    found = _BY_WORD.get(text.lower().replace("_", "").replace("-", ""))
    if found is None:
        raise ValueError(f"expected one of {', '.join(_WORDS)}, got {text!r}")
    return found


def _principal(text: str) -> str:
    try:
        return str(Principal.parse(text))
    except ValueError:
        raise ValueError(
            f"expected a principal such as User:{text or 'alice'}, got {text!r}"
        ) from None
