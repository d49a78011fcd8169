"""A group's status as programs see it: the JSON of `rockgate groups`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rockgate.cli.admin.group_status import GroupStatus, PartitionLag
    from rockgate.cli.client.admin.groups import Group


def status_fields(status: GroupStatus) -> dict[str, Any]:
    """A group with its offsets."""
    return {
        **group_fields(status.group),
        "lag": status.lag,
        "offset_lag": status.offset_lag,
        "offsets": [_line_fields(each) for each in status.lines],
    }


def _line_fields(line: PartitionLag) -> dict[str, Any]:
    owner = line.owner
    return {
        "topic": line.place[0],
        "partition": line.place[1],
        "committed_offset": line.committed,
        "end_offset": line.end,
        "lag": line.lag,
        "offset_lag": line.offset_lag,
        "member_id": owner.member_id if owner else None,
        "client_id": owner.client_id if owner else None,
        "host": owner.host if owner else None,
    }


def group_fields(group: Group) -> dict[str, Any]:
    """A group without its offsets, as programs see it."""
    return {
        "group": group.group_id,
        "kind": group.kind,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "coordinator": group.coordinator,
        "members": [
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "assignment": [{"topic": t, "partition": p} for t, p in each.assignment],
            }
            for each in group.members
        ],
    }
