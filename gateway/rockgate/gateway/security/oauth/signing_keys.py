"""The keys that sign tokens, as a JSON Web Key Set has them (RFC 7517).

Only public keys of asymmetric algorithms are used: whoever knew a symmetric one could sign tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

KEYS_MAX: Final = 100
RSA_BITS_MIN: Final = 2_048
RSA_BITS_MAX: Final = 8_192
"""Checking a signature of a longer one would take milliseconds."""
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_CURVE: Final = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}
_PRIVATE: Final = "d"
ALGORITHMS: Final = frozenset({*_RSA, *(name for names in _BY_CURVE.values() for name in names)})
"""All that are supported. Unsigned tokens and those of shared secrets are not."""


class SigningKey(NamedTuple):
    """A key, and the algorithms that it may be used with."""

    id: str | None
    key: Any
    algorithms: Sequence[str]


class InvalidKeys(ValueError):
    """What should be a set of keys is not one. The text is a phrase."""


def read_keys(text: bytes) -> list[SigningKey]:
    """The keys that can be used; InvalidKeys if there are none, or it is not a set."""
    try:
        found = json.loads(text)
        listed = found["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidKeys("not a JSON Web Key Set") from None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise InvalidKeys(f"must list at most {KEYS_MAX} keys")
    keys = [key for each in listed if isinstance(each, dict) and (key := _read(each)) is not None]
    if not keys:
        raise InvalidKeys("none of its keys can be used; they must be RSA, EC or OKP, and public")
    return keys


def _read(given: Mapping[str, Any]) -> SigningKey | None:
    """A key; None for one that is of no use here."""
    key_id, use, only = given.get("kid"), given.get("use", "sig"), given.get("alg")
    if use != "sig" or _PRIVATE in given or not isinstance(key_id, str | None):
        return None
    try:
        key, algorithms = _by_type(dict(given))
    except (PyJWTError, ValueError, TypeError, AttributeError):
        return None
    if only is not None:
        algorithms = [each for each in algorithms if each == only]
    return SigningKey(key_id, key, algorithms) if algorithms else None


def _by_type(given: dict[str, Any]) -> tuple[Any, Sequence[str]]:
    match given.get("kty"):
        case "RSA":
            key = RSAAlgorithm.from_jwk(given)
            is_sound = RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX
            return key, _RSA if is_sound else ()
        case "EC":
            return ECAlgorithm.from_jwk(given), _BY_CURVE.get(str(given.get("crv")), ())
        case "OKP":
            return OKPAlgorithm.from_jwk(given), _BY_CURVE.get(str(given.get("crv")), ())
    raise ValueError("another type of key")
