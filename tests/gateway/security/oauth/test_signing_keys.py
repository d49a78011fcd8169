from __future__ import annotations

import json
from typing import Any

import pytest
from jwt.algorithms import ECAlgorithm
from tests.gateway.security.oauth.issuer import jwk, key_set, private_key

from rockgate.gateway.security.oauth.signing_keys import KEYS_MAX, InvalidKeys, read_keys


def test_keys_of_all_asymmetric_types_are_read() -> None:
    kinds = ("RSA", "ES256", "ES384", "EdDSA")
    found = read_keys(key_set(*(jwk(kind) for kind in kinds)))
    assert [each.id for each in found] == [f"{kind}-0" for kind in kinds]
    assert [each.algorithms[0] for each in found] == ["RS256", "ES256", "ES384", "EdDSA"]


def test_a_key_that_names_its_algorithm_has_no_other() -> None:
    (found,) = read_keys(key_set(jwk("RSA", alg="PS512")))
    assert list(found.algorithms) == ["PS512"]


PRIVATE = json.loads(ECAlgorithm.to_jwk(private_key("ES256", 0)))


@pytest.mark.parametrize(
    "useless",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
        {**PRIVATE, "kid": "private"},
        jwk("ES256", use="enc"),
        jwk("RSA1024"),
        jwk("RSA", alg="HS256"),
        jwk("secp256k1"),
        jwk("ES256", y="AAAA"),
        {**jwk("ES256"), "kid": 7},
        {"kty": "RSA", "n": "AQAB"},
        {"kty": ["RSA"]},
        {},
    ],
)
def test_keys_that_are_of_no_use_are_left_out(useless: dict[str, Any]) -> None:
    assert [each.id for each in read_keys(key_set(useless, jwk("EdDSA")))] == ["EdDSA-0"]
    with pytest.raises(InvalidKeys):
        read_keys(key_set(useless))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b'{"keys": 7}',
        b'{"keys": []}',
        b'{"keys": [7]}',
        b"[" * 10_000,
        b"\xff",
        key_set(*([jwk("EdDSA")] * (KEYS_MAX + 1))),
    ],
)
def test_what_is_no_set_of_keys_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidKeys):
        read_keys(text)
