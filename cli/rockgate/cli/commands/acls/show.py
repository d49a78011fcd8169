"""`rockgate acls list`."""

from __future__ import annotations

from typing import Annotated

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.acls import options

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate acls list

rockgate acls list --principal User:alice

rockgate acls list --topic orders --pattern match --json
"""


def list_(
    topic: options.Topics = None,
    group: options.Groups = None,
    cluster: options.Cluster = False,
    transactional_id: options.TransactionalIds = None,
    delegation_token: options.Tokens = None,
    user_principal: options.Users = None,
    pattern: Annotated[
        options.Pattern,
        typer.Option(help="Literal or prefixed names only; match: all that are about the name."),
    ] = options.Pattern.ANY,
    principal: options.Principals = None,
    host: options.Hosts = None,
    operation: options.Operations = None,
    permission: options.Permission = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List ACLs: all, or those that fit every option."""
    from rockgate.cli.client.admin import acls
    from rockgate.cli.text import tables

    filters = options.filters(
        resources=options.resources(
            topic=topic,
            group=group,
            is_cluster=cluster,
            transactional_id=transactional_id,
            delegation_token=delegation_token,
            user_principal=user_principal,
        ),
        pattern=pattern,
        principals=options.principals(principal, "--principal"),
        hosts=host or (),
        operations=options.operations(operation),
        permission=permission,
    )
    found = runner.run(
        lambda cluster: acls.describe(cluster, filters),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )

    def show() -> None:
        if not found:
            tables.note("No ACLs found.")
            return
        tables.table(options.COLUMNS, map(options.row, sorted(found, key=lambda each: each[3:])))

    runner.finish({"acls": [options.fields(each) for each in found]}, is_json=json, show=show)
