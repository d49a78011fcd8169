"""SCRAM: proofs of a password, of users and of delegation tokens.

A client that logs in with a delegation token says so in its first message (`tokenauth=true`); its
name is the id of the token then, its password the token's HMAC, and its principal the owner.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from rockgate.gateway.kafka.authentication.mechanism import Step
from rockgate.gateway.security.delegation.token import TokenCredential
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.errors import MalformedToken
from rockgate.protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    ScramServer,
    unknown_credential,
)

NONCE_SIZE: Final = 18
_TOKEN_AUTH: Final = "tokenauth"


class ScramUsers(Protocol):
    """Has the keys of users."""

    def credential(self, name: str, mechanism: ScramMechanism, /) -> ScramCredential:
        """The keys of a user; for one who cannot log in, keys that no password fits."""


class ScramTokens(Protocol):
    """Has the keys of delegation tokens."""

    async def token_credential(
        self, token_id: str, mechanism: ScramMechanism, /
    ) -> TokenCredential | None:
        """The keys of a token that has not expired; None if there is none."""

    def is_usable(self, token_id: str, /) -> bool:
        """Whether clients can log in with a token now."""


class Scram:
    """The mechanism, with one of its hashes."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        *,
        users: ScramUsers,
        tokens: ScramTokens,
        nonce: Callable[[], bytes] = lambda: secrets.token_urlsafe(NONCE_SIZE).encode(),
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._nonce = nonce
        # Ids of tokens are random, so the salts of those that do not exist may change in a restart.
        self._decoy_secret = secrets.token_bytes(32)

    def begin(self) -> ScramExchange:
        """A new attempt."""
        return ScramExchange(self, ScramServer(self._mechanism, self._nonce()))

    def user(self, name: str) -> Claim:
        """The credential of a user."""
        return Claim(self._users.credential(name, self._mechanism), Principal.user(name))

    async def token(self, token_id: str) -> Claim:
        """The credential of a delegation token."""
        found = await self._tokens.token_credential(token_id, self._mechanism)
        if found is None:
            decoy = unknown_credential(self._mechanism, self._decoy_secret, token_id)
            return Claim(decoy, Principal.user(token_id))
        return Claim(found.credential, found.owner, found.expires_ms, token_id)

    def is_current(self, claim: Claim) -> bool:
        """Whether a credential still is what it was when its exchange began."""
        if claim.token_id is not None:
            return self._tokens.is_usable(claim.token_id)
        return self._users.credential(claim.principal.name, self._mechanism) == claim.credential


class Claim(NamedTuple):
    """What a client has to prove, and what it becomes then."""

    credential: ScramCredential
    principal: Principal
    expires_ms: int | None = None
    token_id: str | None = None


class ScramExchange:
    """One attempt, of two messages."""

    def __init__(self, scram: Scram, server: ScramServer) -> None:
        self._scram = scram
        self._server = server
        self._claim: Claim | None = None
        self.claimed = ""

    async def step(self, message: bytes) -> Step:
        """Challenge the client, then check its proof."""
        claim = self._claim
        if claim is None:
            self._claim = claim = await self._claim_of(message)
            return Step(message=self._server.challenge(claim.credential))
        proof = self._server.finish(message)
        return Step(
            message=proof,
            principal=claim.principal,
            expires_ms=claim.expires_ms,
            token_id=claim.token_id,
            # A client may take its time between the two, and the user be removed meanwhile.
            is_current=partial(self._scram.is_current, claim),
        )

    async def _claim_of(self, message: bytes) -> Claim:
        first = self._server.first(message)
        self.claimed = first.user
        is_token = first.extensions.get(_TOKEN_AUTH, "false").lower()
        if is_token not in ("true", "false"):
            raise MalformedToken("SCRAM's tokenauth is neither true nor false.")
        if is_token == "true":
            return await self._scram.token(first.user)
        return self._scram.user(first.user)
