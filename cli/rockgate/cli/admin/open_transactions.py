"""Open transactions of Kafka's wire: those in progress, and those that no coordinator ends."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

from rockgate.cli.client.admin import transactions as wire
from rockgate.cli.client.admin.transactions import Hanging, Transaction
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place


async def listed(cluster: Cluster, open_ms: int = 0, *, is_all: bool = False) -> list[Transaction]:
    """Open ones for at least this long, oldest first; `is_all` lists every id."""
    ids = await wire.list_ids(cluster, states=() if is_all else wire.OPEN_STATES)
    described = (await wire.describe(cluster, ids)).values()
    now_ms = int(time() * 1000)
    matching = [
        each
        for each in described
        # One that ended between the two questions is not listed.
        if not isinstance(each, Refused)
        and (is_all or each.is_open)
        and (not open_ms or 0 <= each.start_ms <= now_ms - open_ms)
    ]
    return sorted(matching, key=lambda each: (each.start_ms < 0, each.start_ms, each.id))


async def hanging(
    cluster: Cluster, places: Sequence[Place], open_ms: int
) -> tuple[list[Hanging], list[Refused]]:
    """Those of partitions that no coordinator will end; written to before `open_ms` ago."""
    found = await wire.open_in(cluster, places)
    refused = [each.at(place) for place, each in found.items() if isinstance(each, Refused)]
    before_ms = int(time() * 1000) - open_ms
    candidates = [
        each
        for opens in found.values()
        if not isinstance(opens, Refused)
        for each in opens
        if each.last_ms <= before_ms
    ]
    return await wire.find_hanging(cluster, candidates), refused
