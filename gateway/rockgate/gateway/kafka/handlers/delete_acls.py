"""DeleteAcls: v1-3.

Behaviour
- Every filter is answered with the ACLs that it matched, all of which are removed. An ACL that two
  filters match is in both answers.
- A filter with a number that means nothing is INVALID_REQUEST.
- Without authorization every filter is SECURITY_DISABLED.

Versions
- v2: flexible. v3: resources of type user.

Departs from Kafka
- Filters that match more than 1,000,000 times together are POLICY_VIOLATION, and remove nothing; so
  are those that would have to be compared with ACLs more than 10,000,000 times. A filter that names
  a resource is compared with the ACLs of that name only, another one with all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from rockgate.gateway.kafka.acls.bindings import NO_AUTHORIZER, read_filter
from rockgate.gateway.kafka.request.chunked import Growing, Room, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.grant_filter import GrantFilter
from rockgate.gateway.security.grants import Grant
from rockgate.gateway.security.stored_grants import StoredGrants
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from rockgate.store.errors import StoreError

MATCHES_MAX = 1_000_000
COMPARED_MAX = 10_000_000
TOO_MANY_COMPARED = (
    f"Filters would be compared with ACLs more than {COMPARED_MAX:,} times; split the request, or "
    "name resources."
)
PIECE_COUNT = 500
REMOVED_COUNT = 100
"""ACLs that are removed by one change."""

Failure: TypeAlias = tuple[ErrorCode, str]
Matched: TypeAlias = list[Grant] | Failure


class DeleteAcls:
    """Removes ACLs."""

    def __init__(
        self, *, grants: StoredGrants | None, durability: Durability, audit: Audit
    ) -> None:
        """Without authorization there are no `grants`."""
        self._grants = grants
        self._durability = durability
        self._audit = audit

    def handle(
        self, request: DeleteAclsRequest, call: Call
    ) -> DeleteAclsResponse | Awaitable[DeleteAclsResponse]:
        """Remove what the filters match, some at a time."""
        if self._grants is None:
            return _all(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return in_slices(self._steps(self._grants, request, call))

    def refuse(self, request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
        """Reject every filter with the same error."""
        return _all(request, code, code.meaning)

    def _steps(
        self, grants: StoredGrants, request: DeleteAclsRequest, call: Call
    ) -> Steps[DeleteAclsResponse]:
        matched: list[Matched] = []
        count = compared = 0
        for asked in request.filters:
            try:
                wanted = read_filter(asked)
            except RequestError as error:
                matched.append((error.code, error.reason))
                continue
            candidates = wanted.candidates(grants)
            compared += len(candidates)
            if compared > COMPARED_MAX:
                return _all(request, ErrorCode.POLICY_VIOLATION, TOO_MANY_COMPARED)
            found = yield from _matched(wanted, candidates)
            count += len(found)
            if count > MATCHES_MAX:
                reason = f"Filters match more than {MATCHES_MAX:,} times; split the request."
                return _all(request, ErrorCode.POLICY_VIOLATION, reason)
            matched.append(found)
        failed = yield from self._remove(grants, matched, call)
        results = Growing(DeleteAclsResponse, DeleteAclsFilterResult, call.version, _unlimited())
        for outcome in matched:
            results.add((yield from _result(outcome, failed, call.version)))
            yield None
        return self._durability.after_changes(DeleteAclsResponse(filter_results=results.take()))

    def _remove(
        self, grants: StoredGrants, matched: list[Matched], call: Call
    ) -> Generator[None, None, dict[Grant, Failure]]:
        """Remove all that was matched; return what could not be, and why."""
        failed: dict[Grant, Failure] = {}
        peer = call.peer
        left = chain.from_iterable(each for each in matched if isinstance(each, list))
        while some := list(islice(left, REMOVED_COUNT)):
            failure: Failure | None = None
            try:
                grants.remove(some)
            except StoreError as error:
                failure = explain(error)
                failed.update(dict.fromkeys(some, failure))
            for grant in some:
                self._audit.changed(
                    peer.principal,
                    peer.remote.host,
                    api="DELETE_ACLS",
                    what=str(grant),
                    outcome="ok" if failure is None else failure[0].name,
                )
            yield
        return failed


def _matched(
    wanted: GrantFilter, candidates: Sequence[Grant]
) -> Generator[None, None, list[Grant]]:
    found: list[Grant] = []
    if not candidates:
        yield
    for at in range(0, len(candidates), PIECE_COUNT):
        found += filter(wanted.matches, candidates[at : at + PIECE_COUNT])
        yield
    return found


def _result(
    outcome: Matched, failed: dict[Grant, Failure], version: int
) -> Generator[None, None, DeleteAclsFilterResult]:
    if not isinstance(outcome, list):
        code, reason = outcome
        return DeleteAclsFilterResult(error_code=code, error_message=reason, matching_acls=[])
    acls = Growing(DeleteAclsResponse, DeleteAclsMatchingAcl, version, _unlimited())
    for index, grant in enumerate(outcome):
        acls.add(_described(grant, failed.get(grant)))
        if index % PIECE_COUNT == 0:
            yield
    return DeleteAclsFilterResult(error_message=None, matching_acls=acls.take())


def _described(grant: Grant, failure: Failure | None) -> DeleteAclsMatchingAcl:
    code, reason = failure or (ErrorCode.NONE, None)
    return DeleteAclsMatchingAcl(
        error_code=code,
        error_message=reason,
        resource_type=grant.resource_type,
        resource_name=grant.resource_name,
        pattern_type=grant.pattern_type,
        principal=grant.principal,
        host=grant.host,
        operation=grant.operation,
        permission_type=grant.permission,
    )


def _unlimited() -> Room:
    """What was removed is always answered; `MATCHES_MAX` limits it."""
    return Room(1 << 40)


def _all(request: DeleteAclsRequest, code: ErrorCode, reason: str) -> DeleteAclsResponse:
    one = DeleteAclsFilterResult(error_code=code, error_message=reason, matching_acls=[])
    return DeleteAclsResponse(filter_results=[one] * len(request.filters))
