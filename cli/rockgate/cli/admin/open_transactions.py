"""Open transactions of Kafka's wire: those in progress, and those that no coordinator ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import Final

from rockgate.cli.client.admin import transactions as wire
from rockgate.cli.client.admin.transactions import Hanging, Open, Transaction
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place

PLACES_AT_ONCE: Final = 1_000
"""Partitions of one question to their leaders."""


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
    cluster: Cluster,
    places: Sequence[Place],
    open_ms: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[list[Hanging], list[Refused]]:
    """Those of partitions that no coordinator will end; written to before `open_ms` ago.

    `progress` is called with the number of partitions that were asked so far.
    """
    found: dict[Place, list[Open] | Refused] = {}
    for at in range(0, len(places), PLACES_AT_ONCE):
        found |= await wire.open_in(cluster, places[at : at + PLACES_AT_ONCE])
        progress(len(found))
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
