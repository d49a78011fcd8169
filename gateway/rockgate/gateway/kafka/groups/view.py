"""A group as administrators see it, whatever the protocol of its members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.members import Member


class GroupView(NamedTuple):
    """A group as ListGroups and DescribeGroups show it."""

    kind: GroupType
    state: GroupState
    protocol_type: str
    protocol_name: str
    members: Sequence[Member]
    """Those of the classic protocol, in a classic group."""
    topics: Callable[[], frozenset[str]] | None = None
    """Returns what the members of a consumer group subscribe to; None for other groups."""
