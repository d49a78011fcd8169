"""`rockgate acls add` and `remove`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.acls import options
from rockgate.cli.text.echo import say
from rockgate.cli.text.values import plural
from rockgate.gateway.security.grants import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)

if TYPE_CHECKING:
    from rockgate.cli.client.admin.acls import AclFilter
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import Refused

ADD_EXAMPLES = """
[bold]Examples[/bold]

rockgate acls add --allow-principal User:shop --producer --topic orders

rockgate acls add --allow-principal User:billing --consumer --topic orders --group billing

rockgate acls add --allow-principal User:alice --operation Read --topic team- --prefixed --dry-run

rockgate acls add --deny-principal 'User:*' --host 10.0.0.7 --operation All --topic '*'
"""
REMOVE_EXAMPLES = """
[bold]Examples[/bold]

rockgate acls remove --principal User:shop --dry-run

rockgate acls remove --topic orders --yes

rockgate acls remove --principal User:alice --operation Read --topic team- --prefixed
"""
PRODUCER = {
    AclResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
CONSUMER = {
    AclResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    AclResourceType.GROUP: (AclOperation.READ,),
}
ACLS_MAX = 10_000

Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-principal",
        metavar="User:NAME",
        help="Principal that may do it, User:* for all; repeatable.",
    ),
]
Denied = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-principal",
        metavar="User:NAME",
        help="Principal that may not do it; repeatable.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="ADDRESS", help="--host, for allowed principals."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--deny-host", metavar="ADDRESS", help="--host, for denied principals."),
]
Producer = Annotated[
    bool,
    typer.Option(
        "--producer", help="What a producer needs on the topics and the transactional ids."
    ),
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="What a consumer needs on the topics and the groups.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would change, without changing anything.")
]


def add(
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    topic: options.Topics = None,
    group: options.Groups = None,
    cluster: options.Cluster = False,
    transactional_id: options.TransactionalIds = None,
    delegation_token: options.Tokens = None,
    user_principal: options.Users = None,
    prefixed: options.Prefixed = False,
    operation: options.Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    host: options.Hosts = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    dry_run: DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Add ACLs: these principals may, or may not, do these operations on these resources."""
    from rockgate.cli.client.admin import acls

    resources = options.resources(
        topic=topic,
        group=group,
        is_cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    wanted = _combined(
        principals=[
            *(
                (each, Permission.ALLOW, allow_host or host)
                for each in options.principals(allow_principal, "--allow-principal")
            ),
            *(
                (each, Permission.DENY, deny_host or host)
                for each in options.principals(deny_principal, "--deny-principal")
            ),
        ],
        needs=_needs(resources, options.operations(operation), producer, consumer),
        pattern=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
    )

    async def work(cluster: Cluster) -> tuple[set[Grant], Mapping[Grant, Refused | None]]:
        known = set(await acls.describe(cluster, [acls.AclFilter(*each) for each in wanted]))
        missing = [each for each in wanted if each not in known]
        if dry_run or not missing:
            return known, dict.fromkeys(missing)
        return known, await acls.create(cluster, missing)

    known, done = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    present = [each for each in wanted if each in known]
    _finish(done, "added", json, is_dry_run=dry_run, present=present)


def remove(
    principal: options.Principals = None,
    topic: options.Topics = None,
    group: options.Groups = None,
    cluster: options.Cluster = False,
    transactional_id: options.TransactionalIds = None,
    delegation_token: options.Tokens = None,
    user_principal: options.Users = None,
    prefixed: options.Prefixed = False,
    operation: options.Operations = None,
    host: options.Hosts = None,
    permission: options.Permission = None,
    every: Annotated[bool, typer.Option("--all", help="Remove all ACLs.")] = False,
    dry_run: DryRun = False,
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Remove the ACLs that fit every option. Asks for confirmation on a terminal."""
    resources = options.resources(
        topic=topic,
        group=group,
        is_cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    pattern = options.Pattern.PREFIXED if prefixed else options.Pattern.LITERAL
    filters = options.filters(
        resources=resources,
        pattern=pattern if resources or prefixed else options.Pattern.ANY,
        principals=options.principals(principal, "--principal"),
        hosts=host or (),
        operations=options.operations(operation),
        permission=permission,
    )
    is_narrowed = bool(resources or principal or operation or host or permission or prefixed)
    if is_narrowed is every:
        runner.usage("Say which ACLs: --principal, --topic, --operation and so on, or --all.")
    _remove(filters, dry_run, yes, bootstrap_server, timeout, json)


def _remove(
    filters: Sequence[AclFilter], dry_run: bool, yes: bool, server: str, timeout: str, json: bool
) -> None:
    """Find them, show them, ask, and remove exactly those."""
    from rockgate.cli.client.admin import acls
    from rockgate.cli.text import tables

    found = runner.run(
        lambda cluster: acls.describe(cluster, filters),
        server=server,
        timeout=timeout,
        is_json=json,
    )
    if not found or dry_run:
        _finish(dict.fromkeys(found), "removed", json, is_dry_run=dry_run)
        return
    if not yes and not json:
        tables.table(options.COLUMNS, map(options.row, found))
    runner.confirm(f"Remove {plural(len(found), 'ACL')}?", is_sure=yes)
    done = runner.run(
        lambda cluster: acls.delete(cluster, found),
        server=server,
        timeout=timeout,
        is_json=json,
    )
    _finish(done, "removed", json)


def _needs(
    resources: Sequence[tuple[AclResourceType, str]],
    operations: Sequence[AclOperation],
    is_producer: bool,
    is_consumer: bool,
) -> list[tuple[AclResourceType, str, AclOperation]]:
    """What is asked for; exits where that is nothing, or incomplete."""
    if not resources:
        runner.usage("Give a resource: --topic, --group, --cluster, --transactional-id, …")
    types = {type_ for type_, _ in resources}
    if is_producer and AclResourceType.TOPIC not in types:
        runner.usage("--producer needs a --topic.")
    if is_consumer and not CONSUMER.keys() <= types:
        runner.usage("--consumer needs a --topic and a --group.")
    if not (operations or is_producer or is_consumer):
        runner.usage("Say what for: --operation Read, Write, … or All; --producer; --consumer.")
    found: dict[tuple[AclResourceType, str, AclOperation], None] = {}
    for type_, name in resources:
        wanted = [*operations]
        wanted += PRODUCER.get(type_, ()) if is_producer else ()
        wanted += CONSUMER.get(type_, ()) if is_consumer else ()
        found.update(((type_, name, each), None) for each in wanted)
    return list(found)


def _combined(
    *,
    principals: Sequence[tuple[str, Permission, Sequence[str] | None]],
    needs: Sequence[tuple[AclResourceType, str, AclOperation]],
    pattern: PatternType,
) -> list[Grant]:
    """An ACL for each principal, address and need."""
    if not principals:
        runner.usage("Say who: --allow-principal User:NAME, or --deny-principal.")
    if pattern is PatternType.PREFIXED and any(name == WILDCARD for _, name, _ in needs):
        runner.usage("* stands for all names only without --prefixed.")
    made: dict[Grant, None] = {}
    for principal, permission, hosts in principals:
        for host in hosts or (WILDCARD,):
            runner.checked("--host", _address, host)
            for type_, name, operation in needs:
                made[Grant(type_, name, pattern, principal, host, operation, permission)] = None
    if len(made) > ACLS_MAX:
        runner.usage(f"That is {len(made):,} ACLs; the maximum of one command is {ACLS_MAX:,}.")
    return list(made)


def _address(text: str) -> None:
    if text == WILDCARD:
        return
    try:
        ip_address(text)
    except ValueError:
        raise ValueError(f"expected an IP address or *, got {text!r}; names never match") from None


def _finish(
    done: Mapping[Grant, Refused | None],
    verb: str,
    is_json: bool,
    *,
    is_dry_run: bool = False,
    present: Sequence[Grant] = (),
) -> None:
    """Print what was added or removed, and the errors."""
    from rockgate.cli.text import tables

    errors = [each for each in done.values() if each is not None]
    changed = [grant for grant, error in done.items() if error is None]
    rows = [{**options.fields(each), f"is_{verb}": not is_dry_run} for each in changed]
    rows += [{**options.fields(each), f"is_{verb}": False} for each in present]

    def show() -> None:
        if present:
            say(f"{plural(len(present), 'ACL')} there already.")
        if not changed and not present and not errors:
            tables.note(f"No ACLs to be {verb}.")
        elif changed:
            count = plural(len(changed), "ACL")
            say(f"Dry run: {count} would be {verb}." if is_dry_run else f"{count} {verb}.")
            tables.table(options.COLUMNS, map(options.row, changed))

    runner.finish({"acls": rows}, errors, is_json=is_json, show=show)
