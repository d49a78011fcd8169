"""CreateAcls: v1-3.

Behaviour
- Each ACL succeeds or fails independently, and the answers are in the order of the request. One
  that exists already succeeds.
- A number that means nothing, an empty name, another name than `kafka-cluster` for the cluster and
  a principal without a type are INVALID_REQUEST.
- Without authorization every ACL is SECURITY_DISABLED.

Versions
- v2: flexible. v3: resources of type user.

Departs from Kafka
- Names of resources have at most 2,048 characters, and there are at most 100,000 ACLs: more are
  POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from rockgate.gateway.kafka.acls.bindings import NO_AUTHORIZER, read_binding
from rockgate.gateway.kafka.request.chunked import Slicing
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.errors import SecurityError
from rockgate.gateway.security.grants import Grant
from rockgate.gateway.security.stored_grants import StoredGrants
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from rockgate.store.errors import StoreError

CHANGE_COST = 10


class CreateAcls:
    """Adds ACLs."""

    def __init__(
        self, *, grants: StoredGrants | None, durability: Durability, audit: Audit
    ) -> None:
        """Without authorization there are no `grants`."""
        self._grants = grants
        self._durability = durability
        self._audit = audit
        self._slicing = Slicing(CreateAclsResponse, AclCreationResult, is_changing=True)

    def handle(
        self, request: CreateAclsRequest, call: Call
    ) -> CreateAclsResponse | Awaitable[CreateAclsResponse]:
        """Add ACLs, some at a time."""
        grants = self._grants
        if grants is None:
            return _all(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return self._slicing.work(
            request.creations,
            lambda: Granting(grants, self._audit, call),
            lambda results: self._durability.after_changes(CreateAclsResponse(results=results)),
            call.version,
        )

    def refuse(self, request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
        """Reject every ACL with the same error."""
        return _all(request, code, code.meaning)


class Granting:
    """A slice of ACLs to be added."""

    def __init__(self, grants: StoredGrants, audit: Audit, call: Call) -> None:
        self._grants = grants
        self._audit = audit
        self._call = call
        self._outcomes: list[Grant | tuple[ErrorCode, str]] = []

    def take(self, asked: AclCreation, /) -> int:
        """Check an ACL."""
        try:
            self._outcomes.append(read_binding(asked))
        except RequestError as error:
            self._outcomes.append((error.code, error.reason))
            return 0
        return CHANGE_COST

    def finish(self) -> Sequence[AclCreationResult]:
        """Add all that passed the check."""
        code, reason = ErrorCode.NONE, None
        try:
            self._grants.add(each for each in self._outcomes if isinstance(each, Grant))
        except SecurityError as error:
            code, reason = ErrorCode.POLICY_VIOLATION, str(error)
        except StoreError as error:
            code, reason = explain(error)
        return [self._result(each, code, reason) for each in self._outcomes]

    def _result(
        self, outcome: Grant | tuple[ErrorCode, str], code: ErrorCode, reason: str | None
    ) -> AclCreationResult:
        if not isinstance(outcome, Grant):
            code, reason = outcome
            return AclCreationResult(error_code=code, error_message=reason)
        peer = self._call.peer
        self._audit.changed(
            peer.principal,
            peer.remote.host,
            api="CREATE_ACLS",
            what=str(outcome),
            outcome="ok" if code == ErrorCode.NONE else code.name,
        )
        return AclCreationResult(error_code=code, error_message=reason)


def _all(request: CreateAclsRequest, code: ErrorCode, reason: str) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=reason)] * len(request.creations)
    )
