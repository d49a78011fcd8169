"""A group's status: its state, its members, and its lag in each partition."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from rockgate.cli.client.admin import committed, groups, offsets
from rockgate.cli.client.admin.groups import Group, GroupMember
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Missed, Refused
from rockgate.cli.client.kafka.view import Place
from rockgate.cli.client.remoting import empty_offsets
from rockgate.cli.client.remoting.connection import RemotingConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """One partition that the group reads or has committed; None where nothing is known."""

    place: Place
    committed: int | None
    end: int | None
    owner: GroupMember | None
    empty: int = 0
    """How many of the offsets between the two hold nothing that could be read."""

    @property
    def offset_lag(self) -> int | None:
        """The distance to the end in offsets; a commit beyond the end is no lag."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)

    @property
    def lag(self) -> int | None:
        """How many records are still to be read."""
        return None if self.offset_lag is None else max(0, self.offset_lag - self.empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """A group and its partitions."""

    group: Group
    lines: list[PartitionLag]

    @property
    def lag(self) -> int:
        """Of all partitions whose lag is known."""
        return sum(line.lag or 0 for line in self.lines)

    @property
    def offset_lag(self) -> int:
        """The same in offsets, with those that hold nothing."""
        return sum(line.offset_lag or 0 for line in self.lines)


async def status(cluster: Cluster, remoting: RemotingConnection, group_id: str) -> GroupStatus:
    """One group with its offsets; Refused if there is none."""
    group = await groups.describe(cluster, group_id)
    owners = group.owners()
    done = await committed.fetch(cluster, group_id)
    places = sorted({*owners, *done})
    ends = await offsets.list_offsets(cluster, dict.fromkeys(places, offsets.LATEST))
    # A deleted topic has no end offset; its commit is still worth showing.
    known = {place: end.offset for place, end in ends.items() if not isinstance(end, Refused)}
    both = [place for place in places if place in known and place in done]
    ranges = {place: (done[place], known[place]) for place in both}
    empty = await empty_offsets.count(cluster, remoting, ranges)
    lines = [
        PartitionLag(
            place=place,
            committed=done.get(place),
            end=known.get(place),
            owner=owners.get(place),
            empty=(empty or {}).get(place, 0),
        )
        for place in places
    ]
    return GroupStatus(group=group, lines=lines)


async def statuses(
    cluster: Cluster, remoting: RemotingConnection, group_ids: list[str]
) -> tuple[list[GroupStatus], list[ClientError]]:
    """Many groups one after the other; those that are not there are errors."""
    found: list[GroupStatus] = []
    errors: list[ClientError] = []
    for group_id in group_ids:
        try:
            found.append(await status(cluster, remoting, group_id))
        except Refused as error:
            errors.append(error)
    return found, errors


async def named(cluster: Cluster, names: list[str]) -> list[str]:
    """The groups that match names and patterns; all groups if there are none."""
    if names and not any(set("*?[") & set(name) for name in names):
        return list(dict.fromkeys(names))
    known = [each.group_id for each in await groups.list_groups(cluster)]
    matching = [each for each in known if not names or any(fnmatchcase(each, n) for n in names)]
    if names and not matching:
        raise Missed(
            f"group {', '.join(names)}", "no match. List groups with `rockgate groups list`"
        )
    return matching
