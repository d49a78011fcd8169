"""Where a group resumes reading: the new offsets by one of these ways, and committing them.

    to_earliest      where the log begins
    to_latest        where it ends
    to_current       what is committed now; where nothing is, the end
    to_offset N      N
    shift_by N       what is committed now, plus N
    to_datetime T    the first record at or after T; where there is none, the end
    by_duration D    the same for D before now
    from_file F      what the file says for each partition

An offset outside the log is moved to its nearer end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Any

from rockgate.cli.admin.partitions import chosen
from rockgate.cli.client.admin import committed, groups
from rockgate.cli.client.admin.offsets import Bounds, bounds, list_offsets
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unusable
from rockgate.cli.client.kafka.view import Place
from rockgate.protocol.kafka.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One partition's offset before and after the reset."""

    place: Place
    old: int | None
    new: int
    end: int


@dataclass(frozen=True, slots=True)
class How:
    """One of the ways of the module's table, and its value."""

    way: str
    value: Any


async def reset(
    cluster: Cluster,
    group: str,
    wanted: Mapping[str, tuple[int, ...] | None],
    how: How,
    *,
    is_executed: bool,
) -> tuple[list[Move], list[ClientError]]:
    """What a reset would change, or has changed; without `wanted`, of all that is committed."""
    await _refuse_active(cluster, group)
    old = await committed.fetch(cluster, group)
    if isinstance(how.value, dict):
        places = list(how.value)
        await cluster.topics(list(dict.fromkeys(name for name, _ in places)))
    elif wanted:
        places = await chosen(cluster, wanted)
    else:
        places = list(old)
    errors: list[ClientError] = []
    limits: dict[Place, Bounds] = {}
    for place, found in (await bounds(cluster, sorted(places))).items():
        if isinstance(found, Refused):
            errors.append(found.at(place))
        else:
            limits[place] = found
    new = await _targets(cluster, how, old, limits, errors)
    moves = [
        Move(
            place=place,
            old=old.get(place),
            new=min(max(offset, limits[place].start), limits[place].end),
            end=limits[place].end,
        )
        for place, offset in new.items()
    ]
    if is_executed and moves and not errors:
        offsets = {move.place: move.new for move in moves}
        done = await committed.commit(cluster, group, offsets)
        errors += [error for error in done.values() if error is not None][:1]
    return moves, errors


async def _refuse_active(cluster: Cluster, group: str) -> None:
    """A group with members cannot be reset; one that does not exist yet may be given offsets."""
    try:
        found = await groups.describe(cluster, group)
    except Refused as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if found.is_active:
        count = len(found.members)
        raise Refused(
            ErrorCode.NON_EMPTY_GROUP,
            "offsets can only be reset while the group has no members;"
            f" it is {found.state} with {count:,} member{'' if count == 1 else 's'}",
            what=f"group {group}",
        )


async def _targets(
    cluster: Cluster,
    how: How,
    old: Mapping[Place, int],
    limits: Mapping[Place, Bounds],
    errors: list[ClientError],
) -> dict[Place, int]:
    """The new offset of each partition; a partition without one is added to `errors`."""
    match how.way:
        case "to_earliest":
            return {place: each.start for place, each in limits.items()}
        case "to_latest":
            return {place: each.end for place, each in limits.items()}
        case "to_current":
            return {place: old.get(place, each.end) for place, each in limits.items()}
        case "to_offset":
            return dict.fromkeys(limits, how.value)
        case "from_file":
            return {place: how.value[place] for place in limits}
        case "shift_by":
            missing = [place for place in limits if place not in old]
            errors += [
                Unusable(f"Topic {t} partition {p} has no committed offset to shift")
                for t, p in missing
            ]
            return {place: old[place] + how.value for place in limits if place in old}
    time_ms = how.value
    if how.way == "by_duration":
        time_ms = int(time() * 1000) - how.value
    new: dict[Place, int] = {}
    for place, found in (await list_offsets(cluster, dict.fromkeys(limits, time_ms))).items():
        if isinstance(found, Refused):
            errors.append(found.at(place))
        else:
            new[place] = found.offset if found.offset >= 0 else limits[place].end
    return new
