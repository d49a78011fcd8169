"""Client quotas on the wire: describes and alters them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import decoded
from rockgate.protocol.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from rockgate.protocol.kafka.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of an entity's type (user, client-id, ip) and name; None is the default of the type."""

_EXACT: Final = 0
_DEFAULT: Final = 1


class Quota(NamedTuple):
    """An entity and what it may use."""

    entity: Entity
    values: Mapping[str, float]


async def describe(cluster: Cluster, entity: Entity, *, is_strict: bool) -> list[Quota]:
    """The quotas of every entity that matches; `is_strict` wants no further parts in it."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
            )
            for kind, name in entity
        ],
        strict=is_strict,
    )
    answer = await (await cluster.anyone()).ask(request, DescribeClientQuotasResponse)
    if answer.error_code:
        raise Refused(answer.error_code, answer.error_message, what="quotas")
    found = [
        Quota(
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            {each.key: each.value for each in sorted(entry.values, key=lambda v: v.key)},
        )
        for entry in decoded(answer.entries)
    ]
    return sorted(found, key=lambda quota: [(kind, name or "") for kind, name in quota.entity])


async def alter(
    cluster: Cluster,
    entity: Entity,
    changes: Sequence[tuple[str, float | None]],
    *,
    is_dry_run: bool = False,
) -> Refused | None:
    """Set the quotas of an entity, or remove those whose value is None."""
    request = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in changes
                ],
            )
        ],
        validate_only=is_dry_run,
    )
    answer = await (await cluster.controller()).ask(request, AlterClientQuotasResponse)
    for each in decoded(answer.entries):
        if each.error_code:
            return Refused(each.error_code, each.error_message, what="quotas")
    return None
