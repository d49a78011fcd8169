"""Whether a bearer token is valid, and whom it is about: a JSON Web Token (RFC 7519).

Behaviour, as Kafka's validator
- The signature is that of a known key, with an asymmetric algorithm: unsigned tokens (`none`) and
  those of shared secrets are refused, whatever the header says.
- Expiry, time of issue and subject are required, issuer and audience where the settings name them.
  The issuer's clock may differ by the settings' skew.
- A scope is a text or a list of texts, or missing.

Departs from Kafka
- Header parameters that must be understood (`crit`) are refused. A time of issue in the future too.
- A subject that no user can have as its name is refused.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from rockgate.gateway.security.errors import InvalidUser
from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.oauth.signing_keys import ALGORITHMS, SigningKey
from rockgate.gateway.security.users import check_name
from rockgate.protocol.sasl.errors import MalformedToken, WrongCredentials

PARTS: Final = 3
HEADER_SIZE_MAX: Final = 4_096
KEY_ID_CHARS_MAX: Final = 255
TIME_MAX: Final = 2**40
"""The latest time in seconds; a later one is not a time."""
_UNSUPPORTED: Final = ("crit", "b64")


class Keys(Protocol):
    """Has the keys that sign tokens."""

    async def find(self, key_id: str | None, algorithm: str, /) -> list[SigningKey]:
        """The keys that a token may have been signed by."""


class Bearer(NamedTuple):
    """Whom a token is about, and until when."""

    name: str
    expires_ms: int


class BearerTokens:
    """Checks tokens."""

    def __init__(self, config: OauthConfig, keys: Keys, now_ms: Callable[[], int]) -> None:
        self._keys = keys
        self._now_ms = now_ms
        self._issuer = config.issuer
        self._audiences = config.audiences()
        self._subject = config.subject_claim
        self._scope = config.scope_claim
        self._skew_ms = config.clock_skew_ms
        self._signatures = PyJWS()

    async def check(self, token: str) -> Bearer:
        """Whom the token is about; SaslError, which does not quote the token, if it is invalid."""
        header = _header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
            raise MalformedToken("The header of the token has no algorithm.")
        if len(key_id or "") > KEY_ID_CHARS_MAX:
            raise MalformedToken("The id of the token's key is too long.")
        if any(each in header for each in _UNSUPPORTED):
            raise MalformedToken("The token has a header that is not supported.")
        if algorithm not in ALGORITHMS:
            raise WrongCredentials("The token is unsigned, or its algorithm is not supported.")
        keys = await self._keys.find(key_id, algorithm)
        if not keys:
            raise WrongCredentials("The token was signed by an unknown key.")
        return self._read(self._verified(token, algorithm, keys))

    def _verified(self, token: str, algorithm: str, keys: list[SigningKey]) -> Mapping[str, Any]:
        """The claims of a token that one of the keys has signed."""
        for each in keys:
            try:
                found = self._signatures.decode(token, each.key, algorithms=[algorithm])
                claims = json.loads(found)
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            if isinstance(claims, dict):
                return claims
        raise WrongCredentials("The signature of the token is wrong.")

    def _read(self, claims: Mapping[str, Any]) -> Bearer:
        now_ms, skew_ms = self._now_ms(), self._skew_ms
        expires_ms = _time_ms(claims, "exp") + skew_ms
        if now_ms >= expires_ms:
            raise WrongCredentials("The token has expired.")
        if _time_ms(claims, "iat") - skew_ms > now_ms:
            raise WrongCredentials("The token was issued in the future.")
        if "nbf" in claims and _time_ms(claims, "nbf") - skew_ms > now_ms:
            raise WrongCredentials("The token is not valid yet.")
        if self._issuer and claims.get("iss") != self._issuer:
            raise WrongCredentials("The token has another issuer.")
        if self._audiences and not self._audiences & _texts(claims, "aud"):
            raise WrongCredentials("The token is for another audience.")
        _texts(claims, self._scope)
        name = claims.get(self._subject)
        if not isinstance(name, str) or not name.strip():
            raise WrongCredentials("The token has no subject.")
        try:
            check_name(name)
        except InvalidUser as error:
            raise WrongCredentials(f"The subject of the token cannot be a user: {error}") from None
        return Bearer(name, expires_ms)


def _header(token: str) -> Mapping[str, Any]:
    parts = token.split(".", PARTS)
    if len(parts) != PARTS or not all(parts) or len(parts[0]) > HEADER_SIZE_MAX:
        raise MalformedToken("The token is not a signed JSON Web Token.")
    try:
        found = json.loads(urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except (ValueError, RecursionError):
        raise MalformedToken("The header of the token is not JSON.") from None
    if not isinstance(found, dict):
        raise MalformedToken("The header of the token is not an object.")
    return found


def _time_ms(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongCredentials(f"The token has no {name}.")
    if not math.isfinite(value) or not 0 <= value <= TIME_MAX:
        raise WrongCredentials(f"The token has an {name} that is not a time.")
    return int(value * 1000)


def _texts(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The values of a claim that is a text or a list of texts."""
    value = claims.get(name, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise WrongCredentials(f"The token has a {name} that is neither a text nor a list of them.")
    return frozenset(values)
