"""SCRAM: exchanges of kafka-python's client, and messages that belong to none."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from random import Random

import pytest
from kafka.net.sasl.scram import ScramClient
from tests.budget import budget
from tests.seeds import seeded

from rockgate.protocol.sasl.errors import MalformedToken, SaslError, WrongCredentials
from rockgate.protocol.sasl.scram import (
    TOKEN_SIZE_MAX,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    credential_of,
    is_password,
    salted_password,
    unknown_credential,
)

NONCE = b"server-nonce"
SALT = b"a salt of 20 bytes.."
MECHANISMS = pytest.mark.parametrize("mechanism", ScramMechanism, ids=lambda each: each.sasl_name)


def credential(mechanism: ScramMechanism, password: str = "pencil") -> ScramCredential:
    salted = salted_password(mechanism, password.encode(), SALT, 4_096)
    return credential_of(mechanism, salted, SALT, 4_096)


def exchange(
    mechanism: ScramMechanism, user: str, password: str, stored: ScramCredential
) -> tuple[str, ScramClient, bytes]:
    """Log in with kafka-python's client: the user's name, the client, and the server's proof."""
    client = ScramClient(user, password, mechanism.sasl_name)
    server = ScramServer(mechanism, NONCE)
    first = server.first(client.first_message())
    client.process_server_first_message(server.challenge(stored))
    return first.user, client, server.finish(client.final_message())


@MECHANISMS
def test_a_client_that_knows_the_password_is_believed_and_believes(
    mechanism: ScramMechanism,
) -> None:
    user, client, proof = exchange(mechanism, "alice", "pencil", credential(mechanism))
    assert user == "alice"
    client.process_server_final_message(proof)


@MECHANISMS
def test_a_client_may_have_its_own_nonce_twice_as_librdkafka_before_2_6_1(
    mechanism: ScramMechanism,
) -> None:
    def proof(password: str, nonces: bytes) -> bytes:
        server = ScramServer(mechanism, NONCE)
        server.first(b"n,,n=alice,r=abc")
        challenge = server.challenge(credential(mechanism))
        unsigned = b"c=biws,r=" + nonces
        salted = salted_password(mechanism, password.encode(), SALT, 4_096)
        digest = mechanism.hash_name
        key = hmac.digest(salted, b"Client Key", digest)
        signed = b",".join((b"n=alice,r=abc", challenge, unsigned))
        signature = hmac.digest(hashlib.new(digest, key).digest(), signed, digest)
        found = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        return server.finish(unsigned + b",p=" + b64encode(found))

    assert proof("pencil", b"abc" + NONCE).startswith(b"v=")
    assert proof("pencil", b"abcabc" + NONCE).startswith(b"v=")
    with pytest.raises(WrongCredentials):
        proof("guess", b"abcabc" + NONCE)
    for other in (b"abcabcabc", b"xabc", b"", b"abcab"):
        with pytest.raises(MalformedToken, match="another nonce"):
            proof("pencil", other + NONCE)


@MECHANISMS
@pytest.mark.parametrize("user", ["a,b=c", "Ärger", "=2C"])
def test_a_name_may_have_any_character(mechanism: ScramMechanism, user: str) -> None:
    escaped = user.replace("=", "=3D").replace(",", "=2C")
    server = ScramServer(mechanism, NONCE)
    assert server.first(f"n,,n={escaped},r=abc".encode()).user == user


@MECHANISMS
def test_a_wrong_password_and_an_unknown_user_end_alike(mechanism: ScramMechanism) -> None:
    unknown = unknown_credential(mechanism, b"secret", "bob")
    known = credential(mechanism)
    for stored in (known, unknown):
        with pytest.raises(WrongCredentials, match=r"^The proof is wrong\.$"):
            exchange(mechanism, "alice", "wrong", stored)
    assert (len(unknown.salt), unknown.iterations) == (len(known.salt), known.iterations)


@MECHANISMS
def test_an_unknown_user_always_gets_the_same_salt_and_each_one_another(
    mechanism: ScramMechanism,
) -> None:
    bob = unknown_credential(mechanism, b"secret", "bob")
    assert bob == unknown_credential(mechanism, b"secret", "bob")
    assert bob.salt != unknown_credential(mechanism, b"secret", "eve").salt
    assert bob.salt != unknown_credential(mechanism, b"another secret", "bob").salt


@MECHANISMS
def test_a_password_itself_is_checked_against_the_stored_keys(mechanism: ScramMechanism) -> None:
    stored = credential(mechanism)
    assert is_password(mechanism, stored, b"pencil")
    assert not is_password(mechanism, stored, b"pencil ")


def test_no_keys_are_shown() -> None:
    stored = credential(ScramMechanism.SHA_256)
    assert repr(stored) == "ScramCredential(iterations=4096)"


def test_extensions_of_a_client_are_read() -> None:
    server = ScramServer(ScramMechanism.SHA_256, NONCE)
    first = server.first(b"n,,n=token-id,r=abc,tokenauth=true")
    assert first.extensions == {"tokenauth": "true"}


def test_a_client_may_name_itself_twice_but_act_as_no_one_else() -> None:
    server = ScramServer(ScramMechanism.SHA_256, NONCE)
    assert server.first(b"y,a=alice,n=alice,r=abc").user == "alice"
    with pytest.raises(MalformedToken, match="another user"):
        server.first(b"n,a=root,n=alice,r=abc")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=a,r=abc",
        b"n,,r=abc,n=a",
        b"n,,n=,r=abc",
        b"n,,n=a,r=",
        b"n,,n=a,r=a b",
        b"n,,n=a=2,r=abc",
        b"n,,n=\xff,r=abc",
        b"n,,n=a,r=abc,extension",
        b"n,,n=a,r=abc" + b",x=1" * 17,
        b"n,,n=a,r=" + b"a" * TOKEN_SIZE_MAX,
    ],
    ids=lambda token: token[:24].decode("latin-1") or "empty",
)
def test_a_first_message_that_is_none_is_refused(token: bytes) -> None:
    with pytest.raises(MalformedToken):
        ScramServer(ScramMechanism.SHA_256, NONCE).first(token)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"c=biws,r=abcserver-nonce",
        b"c=eSws,r=abcserver-nonce,p=AAAA",
        b"c=biws,r=abcother-nonce,p=AAAA",
        b"c=biws,r=abcserver-nonce,p=not base64",
        b"c=biws,p=AAAA",
    ],
    ids=["empty", "no proof", "other binding", "other nonce", "no base64", "no nonce"],
)
def test_a_last_message_that_is_none_is_refused(token: bytes) -> None:
    server = ScramServer(ScramMechanism.SHA_256, NONCE)
    server.first(b"n,,n=a,r=abc")
    server.challenge(credential(ScramMechanism.SHA_256))
    with pytest.raises(MalformedToken):
        server.finish(token)


def test_a_proof_of_another_size_is_wrong() -> None:
    server = ScramServer(ScramMechanism.SHA_256, NONCE)
    server.first(b"n,,n=a,r=abc")
    server.challenge(credential(ScramMechanism.SHA_256))
    with pytest.raises(WrongCredentials):
        server.finish(b"c=biws,r=abcserver-nonce,p=AAAA")


def test_nothing_but_a_proof_is_believed() -> None:
    random = seeded()
    mechanism = ScramMechanism.SHA_256
    stored = unknown_credential(mechanism, b"secret", "a")
    for _ in range(budget("sasl_exchanges")):
        server = ScramServer(mechanism, NONCE)
        try:
            server.first(_damaged(random, b"n,,n=a,r=abc,tokenauth=true"))
            server.challenge(stored)
            server.finish(_damaged(random, b"c=biws,r=abcserver-nonce,p=" + b"A" * 44))
        except SaslError:
            continue
        raise AssertionError("believed")


def _damaged(random: Random, token: bytes) -> bytes:
    changed = bytearray(token)
    for _ in range(random.randrange(4)):
        at = random.randrange(len(changed))
        match random.randrange(3):
            case 0:
                changed[at] = random.randrange(256)
            case 1:
                del changed[at]
            case _:
                changed[at:at] = changed[: random.randrange(len(changed))]
    return bytes(changed)
