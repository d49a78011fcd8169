"""CreateDelegationToken: v1-3.

Behaviour
- The token is the client's own, or that of the owner that is named, which takes CREATE_TOKENS on
  the user. Its HMAC is the password to log in with; no response but those of tokens has it.
- Clients that have not authenticated, or only with a token, are
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without `security.delegation_tokens` all others are
  DELEGATION_TOKEN_AUTH_DISABLED.
- A renewer of another type than User is INVALID_PRINCIPAL_TYPE.

Versions
- v2: flexible.  v3: another owner, and who asked for the token.

Departs from Kafka
- An owner of another type than User is INVALID_PRINCIPAL_TYPE.
- There are at most 100 renewers, 10,000 tokens of an owner, and 100,000 tokens: more are
  POLICY_VIOLATION. The same goes for names that no user can have.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.permitted import Permitted
from rockgate.gateway.kafka.tokens.requests import NO_TIME, check_client, check_enabled, refusal
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.delegation.tokens import DelegationTokens
from rockgate.gateway.security.errors import SecurityError
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import USER, Principal
from rockgate.gateway.security.users import check_name
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

RENEWERS_MAX: Final = 100


class CreateDelegationToken:
    """Issues tokens."""

    def __init__(
        self,
        *,
        tokens: DelegationTokens,
        permitted: Permitted,
        durability: Durability,
        audit: Audit,
    ) -> None:
        self._tokens = tokens
        self._permitted = permitted
        self._durability = durability
        self._audit = audit

    def handle(
        self, request: CreateDelegationTokenRequest, call: Call
    ) -> CreateDelegationTokenResponse | Awaitable[CreateDelegationTokenResponse]:
        """Issue a token."""
        requester = call.peer.principal
        owner = _owner(request, requester)
        try:
            response = self._issue(request, call, owner)
        except RequestError as error:
            return _response(owner, requester, error.code)
        return self._durability.after_changes(response)

    def _issue(
        self, request: CreateDelegationTokenRequest, call: Call, owner: Principal
    ) -> CreateDelegationTokenResponse:
        check_client(call.peer)
        self._check_owner(call, owner)
        renewers = _renewers(request)
        _check(owner, renewers)
        check_enabled(self._tokens)
        requester = call.peer.principal
        try:
            issued = self._tokens.create(
                requester=requester,
                owner=owner,
                renewers=renewers,
                lifetime_ms=request.max_lifetime_ms,
            )
        except SecurityError as error:
            raise refusal(error) from error
        self._audit.changed(
            requester,
            call.peer.remote.host,
            api=ApiKey.CREATE_DELEGATION_TOKEN.name,
            what=f"DELEGATION_TOKEN:{issued.id} owner {owner}",
        )
        response = _response(owner, requester, ErrorCode.NONE)
        response.token_id, response.hmac, token = issued
        response.issue_timestamp_ms = token.issued_ms
        response.expiry_timestamp_ms = token.expires_ms
        response.max_timestamp_ms = token.ends_ms
        return response

    def _check_owner(self, call: Call, owner: Principal) -> None:
        """A token of another takes a grant."""
        api, operation, type_ = (
            ApiKey.CREATE_DELEGATION_TOKEN,
            AclOperation.CREATE_TOKENS,
            AclResourceType.USER,
        )
        if owner != call.peer.principal and not self._permitted.permit(
            call.peer, api, operation, type_, str(owner)
        ):
            code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            raise RequestError(code, code.meaning)

    def refuse(
        self, request: CreateDelegationTokenRequest, code: ErrorCode
    ) -> CreateDelegationTokenResponse:
        """An error and no token."""
        none = Principal("", "")
        return _response(none, none, code)


def _owner(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    if not request.owner_principal_name:
        return requester
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _renewers(request: CreateDelegationTokenRequest) -> list[Principal]:
    if len(request.renewers) > RENEWERS_MAX:
        reason = f"A token has at most {RENEWERS_MAX} renewers."
        raise RequestError(ErrorCode.POLICY_VIOLATION, reason)
    return [Principal(each.principal_type, each.principal_name) for each in request.renewers]


def _check(owner: Principal, renewers: list[Principal]) -> None:
    if any(each.type != USER for each in (owner, *renewers)):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
        raise RequestError(code, code.meaning)
    try:
        for each in (owner, *renewers):
            check_name(each.name)
    except SecurityError as error:
        raise RequestError(ErrorCode.POLICY_VIOLATION, str(error)) from None


def _response(
    owner: Principal, requester: Principal, code: ErrorCode
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
        token_id="",
        hmac=b"",
    )
