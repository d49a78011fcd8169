"""Logging in by SASL on a socket, with any mechanism, as a client of Kafka's wire does."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.player import Address, Wire

from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rockgate.protocol.kafka.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rockgate.protocol.sasl.scram import ScramMechanism
from rockgate.protocol.sasl.scram_client import ScramClient


def shake(wire: Wire, mechanism: str) -> int:
    """Choose a mechanism; the error."""
    request = SaslHandshakeRequest(mechanism=mechanism)
    return wire.ask(request, SaslHandshakeResponse, 1).error_code


def step(wire: Wire, message: bytes) -> SaslAuthenticateResponse:
    """One message of the mechanism."""
    return wire.ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, 2)


def plain(wire: Wire, user: str, password: str) -> SaslAuthenticateResponse:
    """Log in with PLAIN."""
    assert shake(wire, "PLAIN") == 0
    return step(wire, f"\0{user}\0{password}".encode())


def scram(
    wire: Wire,
    user: str,
    password: str,
    mechanism: ScramMechanism = ScramMechanism.SHA_512,
    *,
    is_token: bool = False,
) -> SaslAuthenticateResponse:
    """Log in with SCRAM."""
    client = ScramClient(mechanism, user, password, nonce=b"fyko", is_token=is_token)
    assert shake(wire, mechanism.sasl_name) == 0
    challenge = step(wire, client.first())
    if challenge.error_code:
        return challenge
    last = step(wire, client.final(challenge.auth_bytes))
    if not last.error_code:
        client.verify(last.auth_bytes)
    return last


def bearer(wire: Wire, token: str) -> SaslAuthenticateResponse:
    """Log in with OAUTHBEARER."""
    assert shake(wire, "OAUTHBEARER") == 0
    return step(wire, b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01")


def opened(address: Address, log_in: Callable[[Wire], SaslAuthenticateResponse]) -> Wire:
    """A connection that has logged in."""
    wire = Wire(address)
    response = log_in(wire)
    assert response.error_code == 0, response.error_message
    return wire


def is_closed(wire: Wire) -> bool:
    """Whether the server closes a connection on which nothing is outstanding."""
    wire.socket.settimeout(20)
    try:
        return wire.socket.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
