"""What the requests of delegation tokens have in common: who may send them, and their errors."""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.security.delegation.tokens import DelegationTokens
from rockgate.gateway.security.errors import (
    NotTokenOwner,
    SecurityError,
    TokenExpired,
    TokenNotFound,
)
from rockgate.gateway.security.principal import ANONYMOUS
from rockgate.protocol.kafka.errors import ErrorCode

NO_TIME: Final = -1
"""A time of a response that has an error."""
_CODES: Final = {
    TokenNotFound: ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    TokenExpired: ErrorCode.DELEGATION_TOKEN_EXPIRED,
    NotTokenOwner: ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
}


def check_client(peer: Peer) -> None:
    """Refuse clients that have not authenticated, or only with a token."""
    login = None if peer.authentication is None else peer.authentication.login
    if peer.principal == ANONYMOUS or (login is not None and login.token_id is not None):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        raise RequestError(code, code.meaning)


def check_enabled(tokens: DelegationTokens) -> None:
    """Refuse all clients, where there are no tokens."""
    if not tokens.is_enabled:
        code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        raise RequestError(code, code.meaning)


def refusal(error: SecurityError) -> RequestError:
    """The error of a request that the tokens refuse."""
    return RequestError(_CODES.get(type(error), ErrorCode.POLICY_VIOLATION), str(error))
