"""What delegation tokens are made of, who may change them, and what they log in with.

docs/internals/security.md has the table of states. Nothing here is Kafka's wire.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.gateway.security.credentials.logins import PasswordThreads
from rockgate.gateway.security.credentials.secret_key import SecretKey
from rockgate.gateway.security.delegation.stored_tokens import StoredTokens
from rockgate.gateway.security.delegation.token import IssuedToken, Token, TokenCredential
from rockgate.gateway.security.errors import NotTokenOwner, TokenExpired, TokenNotFound
from rockgate.gateway.security.principal import USER, Principal
from rockgate.gateway.security.users import StoredUsers
from rockgate.protocol.sasl.scram import (
    ITERATIONS_MIN,
    SALT_SIZE,
    ScramCredential,
    ScramMechanism,
    credential_of,
    salted_password,
)

PURPOSE: Final = "delegation tokens"
CREDENTIALS_MAX: Final = 10_000
"""Credentials that are cached; hashing one takes milliseconds."""
_ID_SIZE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTerms:
    """How long tokens are valid."""

    is_enabled: bool
    lifetime_ms: int
    """The maximum between issue and end."""
    expiry_ms: int
    """The maximum between a renewal and the expiry."""


class DelegationTokens:
    """Creates, changes and checks tokens."""

    def __init__(
        self,
        *,
        stored: StoredTokens,
        users: StoredUsers,
        key: SecretKey,
        threads: PasswordThreads,
        terms: TokenTerms,
        now_ms: Callable[[], int],
    ) -> None:
        self.stored = stored
        self._users = users
        self._key = key.derived(PURPOSE)
        self._threads = threads
        self._terms = terms
        self._now_ms = now_ms
        self._credentials: BoundedCache[tuple[str, ScramMechanism], ScramCredential] = BoundedCache(
            CREDENTIALS_MAX
        )

    @property
    def is_enabled(self) -> bool:
        """Whether there may be tokens."""
        return self._terms.is_enabled

    # Changing

    def create(
        self,
        *,
        requester: Principal,
        owner: Principal,
        renewers: Sequence[Principal],
        lifetime_ms: int,
    ) -> IssuedToken:
        """Issue a token; a lifetime of 0 or less is the longest."""
        terms, now_ms = self._terms, self._now_ms()
        wanted_ms = lifetime_ms if lifetime_ms > 0 else terms.lifetime_ms
        ends_ms = now_ms + min(wanted_ms, terms.lifetime_ms)
        token_id = _new_id()
        password = self.hmac_of(token_id)
        token = Token(
            owner=str(owner),
            requester=str(requester),
            renewers=list(dict.fromkeys(str(each) for each in renewers)),
            issued_ms=now_ms,
            expires_ms=min(ends_ms, now_ms + terms.expiry_ms),
            ends_ms=ends_ms,
            digest=hashlib.sha256(password).digest(),
            is_of_user=owner.type == USER and owner.name in self._users,
        )
        self.stored.put(token_id, token)
        return IssuedToken(token_id, password, token)

    def renew(self, password: bytes, principal: Principal, period_ms: int) -> IssuedToken:
        """Move the expiry; a period of 0 or less is the longest."""
        found = self._found(password)
        now_ms, longest_ms = self._now_ms(), self._terms.expiry_ms
        if not found.token.is_valid(now_ms):
            raise TokenExpired
        if not found.token.may_be_renewed_by(principal):
            raise NotTokenOwner
        period_ms = min(period_ms, longest_ms) if period_ms > 0 else longest_ms
        return self._put_expiry(found, now_ms + period_ms)

    def expire(self, password: bytes, principal: Principal, period_ms: int) -> tuple[str, int]:
        """Move the expiry, or remove the token if the period is negative; its id, and when."""
        found, now_ms = self._found(password), self._now_ms()
        if not found.token.may_be_renewed_by(principal):
            raise NotTokenOwner
        if period_ms < 0:
            self.stored.remove([found.id])
            return found.id, now_ms
        if not found.token.is_valid(now_ms):
            raise TokenExpired
        return found.id, self._put_expiry(found, now_ms + period_ms).token.expires_ms

    def _put_expiry(self, issued: IssuedToken, expires_ms: int) -> IssuedToken:
        token = issued.token._replace(expires_ms=min(expires_ms, issued.token.ends_ms))
        self.stored.put(issued.id, token)
        return issued._replace(token=token)

    # Reading

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of a token."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def _found(self, password: bytes) -> IssuedToken:
        token_id = self.stored.id_of(hashlib.sha256(password).digest())
        token = None if token_id is None else self.stored.find(token_id)
        if token_id is None or token is None:
            raise TokenNotFound
        # One of another key cannot be logged in with, so that it must not live on either.
        if not hmac.compare_digest(password, self.hmac_of(token_id)):
            raise TokenNotFound
        return IssuedToken(token_id, password, token)

    # Logging in

    def is_usable(self, token_id: str) -> bool:
        """Whether a client can log in with a token now."""
        token = self.stored.find(token_id)
        if token is None or not self.is_enabled or not token.is_valid(self._now_ms()):
            return False
        return not token.is_of_user or self._users.is_enabled(Principal.parse(token.owner).name)

    async def token_credential(
        self, token_id: str, mechanism: ScramMechanism
    ) -> TokenCredential | None:
        """What SCRAM checks a token by; None if it cannot be used."""
        token = self.stored.find(token_id)
        if token is None or not self.is_usable(token_id):
            return None
        key = token_id, mechanism
        found = self._credentials.get(key)
        if found is None:
            found = await self._threads.run(partial(self._hashed, token_id, mechanism))
            self._credentials.put(key, found, 1)
        return TokenCredential(found, Principal.parse(token.owner), token.expires_ms)

    def _hashed(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        salt = hmac.digest(self._key, f"salt:{token_id}".encode(), "sha256")[:SALT_SIZE]
        password = b64encode(self.hmac_of(token_id))
        salted = salted_password(mechanism, password, salt, ITERATIONS_MIN)
        return credential_of(mechanism, salted, salt, ITERATIONS_MIN)


def _new_id() -> str:
    """An id that command lines do not take for an option, as Kafka has them."""
    while (made := secrets.token_urlsafe(_ID_SIZE)).startswith("-"):
        pass
    return made
