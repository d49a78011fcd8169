"""DeleteGroups: v0-2.

Behaviour
- A group without members is deleted with all its offsets; otherwise NON_EMPTY_GROUP or
  GROUP_ID_NOT_FOUND for that group. Many groups are deleted in slices.

Versions
- v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

PIECE_COUNT: Final = 20
"""Groups that are deleted as one change."""


class DeleteGroups:
    """Deletes groups."""

    def __init__(self, *, groups: Groups, durability: Durable) -> None:
        self._groups = groups
        self._durability = durability

    def handle(
        self, request: DeleteGroupsRequest, call: Call
    ) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
        """Delete the groups that can be deleted."""
        return in_slices(self._steps(list(dict.fromkeys(request.groups_names))))

    def _steps(self, names: list[str]) -> Steps[DeleteGroupsResponse]:
        response = DeleteGroupsResponse(results=[])
        for at in range(0, len(names), PIECE_COUNT):
            some = names[at : at + PIECE_COUNT]
            codes = self._groups.delete(some)
            if isinstance(codes, Awaitable):
                codes = yield codes
            response.results += [
                DeletableGroupResult(group_id=name, error_code=code)
                for name, code in zip(some, codes, strict=True)
            ]
            yield None
        return self._durability.after_changes(response)

    def refuse(self, request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=code)
                for name in dict.fromkeys(request.groups_names)
            ]
        )
