"""Tokens that are valid, and all the ways in which they are not."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import jwt
import pytest
from tests.budget import budget
from tests.gateway.security.oauth.issuer import (
    AUDIENCE,
    ISSUER,
    NOW_MS,
    NOW_S,
    claims,
    encoded,
    jwk,
    key_set,
    private_key,
    token,
    unsigned,
)
from tests.seeds import seeded

from rockgate.gateway.security.oauth.bearer import BearerTokens
from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.oauth.signing_keys import SigningKey, read_keys
from rockgate.protocol.sasl.errors import SaslError

CONFIG = OauthConfig(jwks="keys.json", issuer=ISSUER, audience=f"other, {AUDIENCE}")
SKEW_S = CONFIG.clock_skew_ms // 1000


class Keys:
    """A fixed set of keys."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self._keys = read_keys(key_set(*keys))

    async def find(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        return [
            each
            for each in self._keys
            if key_id in (None, each.id) and algorithm in each.algorithms
        ]


KEYS = Keys(*(jwk(kind) for kind in ("RSA", "ES256", "ES384", "EdDSA")))


async def check(text: str, config: OauthConfig = CONFIG, keys: Keys = KEYS) -> tuple[str, int]:
    found = await BearerTokens(config, keys, lambda: NOW_MS).check(text)
    return found.name, found.expires_ms


async def reason(text: str, config: OauthConfig = CONFIG) -> str:
    """Why a token is refused, for the log; it never has a part of the token."""
    with pytest.raises(SaslError) as refused:
        await check(text, config)
    said = str(refused.value)
    assert not any(len(part) > 8 and part in said for part in text.split("."))
    return said


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("RSA", "RS256"),
        ("RSA", "RS512"),
        ("RSA", "PS384"),
        ("ES256", "ES256"),
        ("ES384", "ES384"),
        ("EdDSA", "EdDSA"),
    ],
)
async def test_a_token_of_a_known_key_is_accepted(kind: str, algorithm: str) -> None:
    expires_ms = (NOW_S + 600 + SKEW_S) * 1000
    assert await check(token(kind, algorithm=algorithm)) == ("alice", expires_ms)


async def test_a_token_without_the_id_of_its_key_is_tried_with_all() -> None:
    text = jwt.encode(claims(), private_key("ES256", 0), algorithm="ES256")
    assert (await check(text))[0] == "alice"


@pytest.mark.parametrize("algorithm", ["none", "NONE", "None", "", "HS256"])
async def test_an_unsigned_token_is_refused_whatever_it_says(algorithm: str) -> None:
    header = {"alg": algorithm, "kid": "ES256-0"}
    for end in ("", encoded(b""), encoded(b"x"), token().rpartition(".")[2]):
        await reason(f"{encoded(header)}.{encoded(claims())}.{end}")
    await reason(unsigned())


async def test_a_public_key_is_no_shared_secret() -> None:
    """The classic attack: HMAC with the public key, which is public."""
    for public in (key_set(jwk("RSA")), json.dumps(jwk("RSA")).encode()):
        head = f"{encoded({'alg': 'HS256', 'kid': 'RSA-0'})}.{encoded(claims())}"
        signature = hmac.digest(public, head.encode(), hashlib.sha256)
        assert "not supported" in await reason(f"{head}.{encoded(signature)}")


async def test_a_key_is_used_with_its_own_algorithms_only() -> None:
    await reason(token("ES256", headers={"kid": "RSA-0"}))
    await reason(token("EdDSA", headers={"kid": "ES256-0"}))
    only = Keys(jwk("RSA", alg="RS256"))
    assert await check(token("RSA"), keys=only)
    with pytest.raises(SaslError):
        await check(token("RSA", algorithm="PS256"), keys=only)


async def test_a_key_that_the_token_brings_along_is_ignored() -> None:
    header = {"kid": "ES256-0", "jwk": jwk("ES256", 1), "jku": "http://127.0.0.1/", "x5c": ["x"]}
    assert "signature" in await reason(token("ES256", 1, headers=header))


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"iss": None},
        {"aud": None},
        {"sub": ""},
        {"sub": "  "},
        {"sub": 7},
        {"sub": "ANONYMOUS"},
        {"sub": "*"},
        {"sub": "x" * 256},
        {"exp": NOW_S - SKEW_S},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": 2**62},
        {"exp": float("inf")},
        {"exp": -1},
        {"iat": NOW_S + SKEW_S + 1},
        {"nbf": NOW_S + SKEW_S + 1},
        {"nbf": None, "iat": [1]},
        {"iss": "https://other.example/"},
        {"aud": "somewhere"},
        {"aud": ["somewhere", "else"]},
        {"aud": {"a": 1}},
        {"scope": 7},
        {"scope": [1]},
    ],
)
async def test_a_claim_that_is_missing_or_wrong_is_refused(changed: dict[str, Any]) -> None:
    await reason(token(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": NOW_S - SKEW_S + 1},
        {"iat": NOW_S + SKEW_S},
        {"nbf": NOW_S + SKEW_S},
        {"exp": NOW_S + 0.5},
        {"aud": ["somewhere", "other"]},
        {"scope": None},
        {"scope": ["produce"]},
    ],
)
async def test_the_clock_of_the_issuer_may_differ_and_lists_are_texts_too(
    changed: dict[str, Any],
) -> None:
    assert (await check(token(**changed)))[0] == "alice"


async def test_claims_have_the_names_of_the_settings() -> None:
    config = replace(CONFIG, subject_claim="client_id", scope_claim="scp")
    assert (await check(token(sub=None, client_id="app"), config))[0] == "app"
    assert "subject" in await reason(token(), config)
    assert "scp" in await reason(token(client_id="app", scp=1), config)


async def test_without_issuer_and_audience_any_are_accepted() -> None:
    config = OauthConfig(jwks="keys.json")
    assert (await check(token(iss=None, aud=None), config))[0] == "alice"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a.b",
        "..",
        "a.b.c",
        "a.b.c.d.e",
        f"{encoded(b'[' * 3_000)}.e30.c",
        f"{encoded([1])}.e30.c",
        f"{encoded({'alg': 7})}.e30.c",
        f"{encoded({'alg': 'RS256', 'kid': 1})}.e30.c",
        f"{encoded({'alg': 'RS256', 'kid': 'x' * 300})}.e30.c",
        f"{encoded({'alg': 'RS256', 'x': 'x' * 9_000})}.e30.c",
        f"{encoded({'alg': 'ES256', 'kid': 'ES256-0'})}.e30.!!!",
    ],
)
async def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(SaslError):
        await check(text)


async def test_claims_that_are_no_object_are_refused() -> None:
    header = {"kid": "ES256-0"}
    for payload in (b"[]", b"7", b"\xff", b"[" * 9_000, b"null"):
        text = jwt.PyJWS().encode(payload, private_key("ES256", 0), "ES256", headers=header)
        with pytest.raises(SaslError):
            await check(text)


async def test_parameters_that_must_be_understood_are_refused() -> None:
    for header in ({"crit": ["b64"], "b64": True}, {"crit": ["exp"], "exp": 1}):
        parts = token().split(".")
        parts[0] = encoded({"alg": "ES256", "kid": "ES256-0", **header})
        assert "not supported" in await reason(".".join(parts))


async def test_no_damaged_token_is_accepted() -> None:
    random, whole = seeded(), token()
    for _ in range(budget("fuzz_rounds")):
        damaged = bytearray(whole.encode())
        at = random.randrange(len(damaged) - 2)
        damaged[at] = random.choice(b"ABCxyz019-_.=")
        if bytes(damaged) == whole.encode():
            continue
        with pytest.raises(SaslError):
            await check(damaged.decode())
