"""Logging connections in, against a server that checks what it gets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.cli.client.brokers import Brokers

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import LoginRefused, NotAdmitted
from rockgate.cli.client.kafka.login import Login
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rockgate.protocol.kafka.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rockgate.protocol.sasl.errors import SaslError
from rockgate.protocol.sasl.scram import (
    ScramMechanism,
    ScramServer,
    credential_of,
    salted_password,
)
from rockgate.sdk.client_config import ClientConfig

MECHANISM = ScramMechanism.SHA_512
SALT = b"s" * 20
NO = ErrorCode.SASL_AUTHENTICATION_FAILED


class Guarded(Brokers):
    """Brokers that let alice in, whose password is hunter2."""

    def __init__(self, lifetime_ms: int = 0, impostor: bool = False) -> None:
        super().__init__()
        self.lifetime_ms = lifetime_ms
        self.impostor = impostor
        self.exchange: ScramServer | None = None
        self.mechanisms: list[str] = []
        self.tokens: list[bytes] = []
        self.answers[ApiKey.SASL_HANDSHAKE] = self._handshake
        self.answers[ApiKey.SASL_AUTHENTICATE] = self._authenticate

    def as_user(self, **config: Any) -> Cluster:
        made = ClientConfig(security_protocol="SASL_PLAINTEXT", **{"username": "alice", **config})
        return Cluster([Address("node1", 9092)], timeout_s=5, dial=self.dial, login=Login(made))

    @property
    def keys(self) -> list[ApiKey]:
        return [key for key, _ in self.versions]

    def _handshake(self, node: int, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        self.mechanisms.append(request.mechanism)
        code = 0 if request.mechanism != "PLAIN" else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=["SCRAM-SHA-512", "OAUTHBEARER"])

    def _authenticate(self, node: int, request: SaslAuthenticateRequest) -> Any:
        token = bytes(request.auth_bytes)
        self.tokens.append(token)
        if self.mechanisms[-1] == "OAUTHBEARER":
            return self._bearer(token)
        try:
            return SaslAuthenticateResponse(
                auth_bytes=self._scram(token), session_lifetime_ms=self.lifetime_ms
            )
        except SaslError:
            return SaslAuthenticateResponse(error_code=NO, error_message="Wrong.")

    def _scram(self, token: bytes) -> bytes:
        if self.exchange is None:
            self.exchange = ScramServer(MECHANISM, b"nonce")
            self.exchange.first(token)
            salted = salted_password(MECHANISM, b"hunter2", SALT, 4096)
            return self.exchange.challenge(credential_of(MECHANISM, salted, SALT, 4096))
        exchange, self.exchange = self.exchange, None
        found = exchange.finish(token)
        return b"v=AAAA" if self.impostor else found

    def _bearer(self, token: bytes) -> SaslAuthenticateResponse:
        if token == b"n,,\x01auth=Bearer t0ken\x01\x01":
            return SaslAuthenticateResponse()
        if token == b"\x01":
            return SaslAuthenticateResponse(error_code=NO)
        return SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')


async def test_a_connection_is_logged_in_before_anything_else_is_asked() -> None:
    brokers = Guarded()
    async with brokers.as_user(password="hunter2") as cluster:
        await cluster.metadata()
    assert brokers.keys == [
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.METADATA,
    ]
    assert not any(b"hunter2" in token for token in brokers.tokens)


async def test_a_wrong_password_is_not_tried_again() -> None:
    brokers = Guarded()
    async with brokers.as_user(password="wrong") as cluster:
        with pytest.raises(LoginRefused) as refused:
            await cluster.metadata()
    assert str(refused.value) == (
        "Login of alice at node1:9092 by SCRAM-SHA-512: Wrong (SASL_AUTHENTICATION_FAILED)."
    )
    assert len(brokers.mechanisms) == 1


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    async with Guarded().as_user(password="x", mechanism="PLAIN") as cluster:
        with pytest.raises(LoginRefused, match="the server supports SCRAM-SHA-512, OAUTHBEARER"):
            await cluster.metadata()


async def test_a_server_that_does_not_know_the_password_is_left() -> None:
    async with Guarded(impostor=True).as_user(password="hunter2") as cluster:
        with pytest.raises(LoginRefused, match="The server does not know the password"):
            await cluster.metadata()


async def test_a_session_that_ends_soon_is_renewed_and_nothing_is_asked_meanwhile() -> None:
    brokers = Guarded(lifetime_ms=1)
    async with brokers.as_user(password="hunter2") as cluster:
        await cluster.metadata()
        brokers.lifetime_ms = 60_000
        await asyncio.gather(*(cluster.metadata() for _ in range(3)))
    login = [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.SASL_AUTHENTICATE]
    asked = brokers.keys[1:]
    renewals = 0
    while asked:
        if asked[: len(login)] == login:
            del asked[: len(login)]
            renewals += 1
        else:
            assert asked.pop(0) is ApiKey.METADATA
    assert renewals >= 2
    assert brokers.keys[-3:] == [ApiKey.METADATA] * 3
    assert len(brokers.wires) == 1


async def test_a_token_is_read_for_each_login(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    config = {"mechanism": "OAUTHBEARER", "username": "", "token_file": str(token)}
    async with Guarded().as_user(**config) as cluster:
        await cluster.metadata()
    token.write_text("old")
    brokers = Guarded()
    async with brokers.as_user(**config) as cluster:
        with pytest.raises(LoginRefused, match=r"Login of the token at .* by OAUTHBEARER"):
            await cluster.metadata()
    assert brokers.tokens[-1] == b"\x01"


async def test_a_server_that_closes_at_the_first_request_may_want_a_login() -> None:
    brokers = Brokers()

    def close(node: int, request: Any) -> None:
        brokers.wires[-1].cut()

    brokers.answers[ApiKey.METADATA] = close
    async with brokers.cluster() as cluster:
        with pytest.raises(NotAdmitted, match="closed the connection") as closed:
            await cluster.metadata()
    assert "--username" in closed.value.advice
