import pytest

from rockgate.protocol.sasl.errors import SaslError
from rockgate.protocol.sasl.scram import (
    ScramMechanism,
    ScramServer,
    credential_of,
    salted_password,
)
from rockgate.protocol.sasl.scram_client import ITERATIONS_MAX, ScramClient

SALT = b"salt of twenty bytes"


def exchange(client: ScramClient, mechanism: ScramMechanism, password: str) -> tuple[str, bytes]:
    """The name that the server read, and its last message."""
    server = ScramServer(mechanism, b"server")
    first = server.first(client.first())
    salted = salted_password(mechanism, password.encode(), SALT, 4_096)
    challenge = server.challenge(credential_of(mechanism, salted, SALT, 4_096))
    return first.user, server.finish(client.final(challenge))


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("user", ["alice", "a=b,c", "äöü"])
def test_both_sides_agree(mechanism: ScramMechanism, user: str) -> None:
    client = ScramClient(mechanism, user, "pä=ss,", nonce=b"client")
    name, last = exchange(client, mechanism, "pä=ss,")
    assert name == user
    client.verify(last)
    with pytest.raises(SaslError):
        client.verify(last[:-1])


def test_the_example_of_the_specification_is_reproduced() -> None:
    """RFC 7677, section 3."""
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", nonce=b"rOprNGfwEbeRWgbNEkqO")
    final = client.final(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert final.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_token_is_announced() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "id", "hmac", nonce=b"n", is_token=True)
    assert client.first() == b"n,,n=id,r=n,tokenauth=true"


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=client,s=c2FsdA==,i=4096",
        b"r=otherserver,s=c2FsdA==,i=4096",
        b"r=clientserver,s=?,i=4096",
        b"r=clientserver,s=c2FsdA==,i=1",
        b"r=clientserver,s=c2FsdA==,i=%d" % (ITERATIONS_MAX + 1),
        b"r=clientserver,s=c2FsdA==",
    ],
)
def test_a_server_that_lies_is_refused(challenge: bytes) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "alice", "secret", nonce=b"client")
    with pytest.raises(SaslError):
        client.final(challenge)
