"""The condition under which administrators change where a share group is: it has no members."""

from __future__ import annotations

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode


def check_empty(groups: Groups, name: str) -> None:
    """Refuse a group that is no share group, or has members."""
    if not name:
        raise RequestError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    view = groups.describe(name)
    if view is None:
        raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {name} not found.")
    if view.kind is not GroupType.SHARE:
        raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a share group.")
    if groups.member_count(name):
        code = ErrorCode.NON_EMPTY_GROUP
        raise RequestError(code, code.meaning)
