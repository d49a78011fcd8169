"""Names for the shell to complete: what there is on the server that the command would ask.

A server that is slow or not there completes nothing, and says nothing: a person is in the middle of
typing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster

SECONDS_MAX: Final = 1.0
Names = Callable[["Cluster"], Coroutine[Any, Any, list[str]]]


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics whose names begin with this."""

    async def names(cluster: Cluster) -> list[str]:
        view = await cluster.metadata()
        return [each.name for each in view.topics.values() if not each.is_internal]

    return _beginning(ctx, incomplete, names)


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Groups whose names begin with this."""

    async def names(cluster: Cluster) -> list[str]:
        from rockgate.cli.client.admin.groups import list_groups

        return [each.group_id for each in await list_groups(cluster)]

    return _beginning(ctx, incomplete, names)


def users(ctx: typer.Context, incomplete: str) -> list[str]:
    """Users whose names begin with this."""

    async def names(cluster: Cluster) -> list[str]:
        from rockgate.cli.client.admin.users import describe

        return [each.name for each in await describe(cluster)]

    return _beginning(ctx, incomplete, names)


def _beginning(ctx: typer.Context, incomplete: str, names: Names) -> list[str]:
    import asyncio
    import os

    from rockgate.cli.app import connection, runner
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.text import values

    server = ctx.params.get("bootstrap_server") or os.environ.get(runner.SERVER_VARIABLE)

    async def ask() -> list[str]:
        config = connection.config_of(ctx.params.get("client_config"), ctx.params.get("username"))
        if config.lacks_password:
            return []
        seeds = values.addresses(server or config.bootstrap_servers or runner.SERVER)
        async with (
            asyncio.timeout(SECONDS_MAX),
            runner.cluster_of(config, seeds, timeout_s=SECONDS_MAX) as cluster,
        ):
            return await names(cluster)

    try:
        found = asyncio.run(ask())
    except (ClientError, TimeoutError, ValueError):
        return []
    return [name for name in found if name.startswith(incomplete)]
