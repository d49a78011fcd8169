"""RenewDelegationToken: v1-2.

Behaviour
- Owner and renewers of a token move its expiry, by `security.token_expiry_ms` at most, and never
  beyond its end. The token is named by its HMAC.
- An unknown HMAC is DELEGATION_TOKEN_NOT_FOUND, a token that has expired DELEGATION_TOKEN_EXPIRED,
  and that of another principal DELEGATION_TOKEN_OWNER_MISMATCH.
- Who may send this is as for CreateDelegationToken.

Versions
- v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.tokens.requests import NO_TIME, check_client, check_enabled, refusal
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.delegation.tokens import DelegationTokens
from rockgate.gateway.security.errors import SecurityError
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


class RenewDelegationToken:
    """Moves the expiry of tokens."""

    def __init__(self, *, tokens: DelegationTokens, durability: Durability, audit: Audit) -> None:
        self._tokens = tokens
        self._durability = durability
        self._audit = audit

    def handle(
        self, request: RenewDelegationTokenRequest, call: Call
    ) -> RenewDelegationTokenResponse | Awaitable[RenewDelegationTokenResponse]:
        """Renew a token."""
        peer = call.peer
        try:
            check_client(peer)
            check_enabled(self._tokens)
            renewed = self._tokens.renew(
                bytes(request.hmac), peer.principal, request.renew_period_ms
            )
        except SecurityError as error:
            return self.refuse(request, refusal(error).code)
        except RequestError as error:
            return self.refuse(request, error.code)
        self._audit.changed(
            peer.principal,
            peer.remote.host,
            api=ApiKey.RENEW_DELEGATION_TOKEN.name,
            what=f"DELEGATION_TOKEN:{renewed.id}",
        )
        return self._durability.after_changes(
            RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.token.expires_ms)
        )

    def refuse(
        self, request: RenewDelegationTokenRequest, code: ErrorCode
    ) -> RenewDelegationTokenResponse:
        """An error and no time."""
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)
