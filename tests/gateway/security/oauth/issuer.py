"""An OAuth server's signing keys, and the tokens that they sign."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
ISSUER, AUDIENCE = "https://issuer.example/", "brokers"


@cache
def private_key(kind: str, number: int) -> Any:
    """A key; made once, because RSA takes a while."""
    match kind:
        case "RSA":
            return rsa.generate_private_key(65_537, 2_048)
        case "RSA1024":
            return rsa.generate_private_key(65_537, 1_024)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "secp256k1":
            return ec.generate_private_key(ec.SECP256K1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    raise ValueError(kind)


def jwk(kind: str, number: int = 0, *, key_id: str | None = None, **more: Any) -> dict[str, Any]:
    """The public key, as a key set has it; its id is `kind-number`."""
    key = private_key(kind, number).public_key()
    if kind.startswith("RSA"):
        found = json.loads(RSAAlgorithm.to_jwk(key))
    elif kind == "EdDSA":
        found = json.loads(OKPAlgorithm.to_jwk(key))
    else:
        found = json.loads(ECAlgorithm.to_jwk(key))
    found.pop("key_ops", None)
    return {**found, "kid": key_id or f"{kind}-{number}", **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    """The text of a set."""
    return json.dumps({"keys": keys}).encode()


def claims(**more: Any) -> dict[str, Any]:
    """What a valid token says; None removes a claim."""
    found = {
        "sub": "alice",
        "iat": NOW_S - 10,
        "exp": NOW_S + 600,
        "iss": ISSUER,
        "aud": AUDIENCE,
        "scope": "produce consume",
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def token(
    kind: str = "ES256",
    number: int = 0,
    *,
    algorithm: str | None = None,
    headers: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """A token that a key has signed."""
    usual = {"RSA": "RS256", "RSA1024": "RS256", "secp256k1": "ES256K"}
    return jwt.encode(
        claims(**more),
        private_key(kind, number),
        algorithm=algorithm or usual.get(kind, kind),
        headers={"kid": f"{kind}-{number}", **(headers or {})},
    )


def encoded(value: Any) -> str:
    """A part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(**header: Any) -> str:
    """A token of KIP-255: it says of itself that it needs no signature."""
    return f"{encoded({'alg': 'none', **header})}.{encoded(claims())}."
