"""ExpireDelegationToken: v1-2.

Behaviour
- Owner and renewers of a token, which is named by its HMAC, move its expiry to now and the period;
  a negative period removes the token, and closes the connections that logged in with it.
- Errors are those of RenewDelegationToken; a token that has expired can still be removed.

Versions
- v2: flexible.

Departs from Kafka
- Kafka leaves open connections alone until their session ends.
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
from rockgate.protocol.kafka.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


class ExpireDelegationToken:
    """Ends tokens, now or later."""

    def __init__(self, *, tokens: DelegationTokens, durability: Durability, audit: Audit) -> None:
        self._tokens = tokens
        self._durability = durability
        self._audit = audit

    def handle(
        self, request: ExpireDelegationTokenRequest, call: Call
    ) -> ExpireDelegationTokenResponse | Awaitable[ExpireDelegationTokenResponse]:
        """End a token."""
        peer = call.peer
        try:
            check_client(peer)
            check_enabled(self._tokens)
            token_id, expires_ms = self._tokens.expire(
                bytes(request.hmac), peer.principal, request.expiry_time_period_ms
            )
        except SecurityError as error:
            return self.refuse(request, refusal(error).code)
        except RequestError as error:
            return self.refuse(request, error.code)
        self._audit.changed(
            peer.principal,
            peer.remote.host,
            api=ApiKey.EXPIRE_DELEGATION_TOKEN.name,
            what=f"DELEGATION_TOKEN:{token_id}",
        )
        return self._durability.after_changes(
            ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
        )

    def refuse(
        self, request: ExpireDelegationTokenRequest, code: ErrorCode
    ) -> ExpireDelegationTokenResponse:
        """An error and no time."""
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)
