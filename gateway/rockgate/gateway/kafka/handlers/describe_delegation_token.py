"""DescribeDelegationToken: v1-3.

Behaviour
- The tokens of the owners that are named, of all for null, of none for an empty list: those that
  the client owns, asked for or may renew; others with DESCRIBE on the token, or DESCRIBE_TOKENS on
  its owner. Each comes with its HMAC, with which it can be renewed and logged in with.
- Tokens that have expired are listed until they are removed.
- Who may send this is as for CreateDelegationToken.

Versions
- v2: flexible.  v3: who asked for each.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Final

from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import Permitted
from rockgate.gateway.kafka.tokens.requests import check_client, check_enabled
from rockgate.gateway.security.delegation.token import Token
from rockgate.gateway.security.delegation.tokens import DelegationTokens
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

PIECE_COUNT: Final = 64


class DescribeDelegationToken:
    """Lists tokens."""

    def __init__(self, *, tokens: DelegationTokens, permitted: Permitted) -> None:
        self._tokens = tokens
        self._permitted = permitted
        self._slicing = Slicing(DescribeDelegationTokenResponse, DescribedDelegationToken)

    def handle(
        self, request: DescribeDelegationTokenRequest, call: Call
    ) -> DescribeDelegationTokenResponse | Awaitable[DescribeDelegationTokenResponse]:
        """List what the client may see, some at a time."""
        try:
            check_client(call.peer)
            check_enabled(self._tokens)
        except RequestError as error:
            return self.refuse(request, error.code)
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: DescribeDelegationTokenRequest, call: Call
    ) -> Steps[DescribeDelegationTokenResponse]:
        stored, found = self._tokens.stored, []
        for at, token_id in enumerate(list(self._wanted(request))):
            token = stored.find(token_id)
            if token is not None and self._may_see(call.peer, token_id, token):
                found.append((token_id, token))
            if at % PIECE_COUNT == PIECE_COUNT - 1:
                yield None
        return self._slicing.work(
            found,
            lambda: Each(self._described),
            lambda tokens: DescribeDelegationTokenResponse(tokens=tokens),
            call.version,
        )

    def _wanted(self, request: DescribeDelegationTokenRequest) -> Iterator[str]:
        stored = self._tokens.stored
        if request.owners is None:
            yield from stored.ids()
            return
        owners = (f"{each.principal_type}:{each.principal_name}" for each in request.owners)
        for owner in dict.fromkeys(owners):
            yield from stored.ids_of(owner)

    def _may_see(self, peer: Peer, token_id: str, token: Token) -> bool:
        may = self._permitted.may
        return (
            token.may_be_seen_by(peer.principal)
            or may(peer, AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token_id)
            or may(peer, AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, token.owner)
        )

    def _described(self, item: tuple[str, Token]) -> DescribedDelegationToken:
        token_id, token = item
        owner, requester = Principal.parse(token.owner), Principal.parse(token.requester)
        return DescribedDelegationToken(
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp=token.issued_ms,
            expiry_timestamp=token.expires_ms,
            max_timestamp=token.ends_ms,
            token_id=token_id,
            hmac=self._tokens.hmac_of(token_id),
            renewers=[
                DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
                for each in map(Principal.parse, token.renewers)
            ],
        )

    def refuse(
        self, request: DescribeDelegationTokenRequest, code: ErrorCode
    ) -> DescribeDelegationTokenResponse:
        """An error and no tokens."""
        return DescribeDelegationTokenResponse(error_code=code, tokens=[])
