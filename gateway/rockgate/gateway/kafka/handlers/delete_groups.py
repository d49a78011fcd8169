"""DeleteGroups: v0-2.

Behaviour
- A group without members goes with all its offsets. NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, each by
  itself.

Versions
- v2: flexible.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.durability import Durability
from rockgate.gateway.kafka.errors import coordinator_code
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.peer import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


class DeleteGroups:
    """Deletes groups."""

    def __init__(self, *, groups: Groups, durability: Durability) -> None:
        self._groups = groups
        self._durability = durability

    def handle(
        self, request: DeleteGroupsRequest, call: Call
    ) -> DeleteGroupsResponse | asyncio.Future[DeleteGroupsResponse]:
        """Delete what can be deleted."""
        names = list(dict.fromkeys(request.groups_names))
        codes = self._groups.delete(names)
        return self._durability.after_changes(
            DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=name, error_code=code)
                    for name, code in zip(names, codes, strict=True)
                ]
            )
        )

    def refuse(self, request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=code)
                for name in request.groups_names
            ]
        )
