"""Real clients authenticate by SASL at a whole server, without TLS."""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as TokenProvider
from tests.differential.player import Wire
from tests.gateway.kafka import sasl_wire
from tests.gateway.security.oauth.issuer import AUDIENCE, jwk, key_set, token, unsigned
from tests.gateway.server import SEGMENT_BYTES

from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.users import User, UserStatus, UserType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from rockgate.protocol.kafka.messages.sasl_authenticate import SaslAuthenticateResponse

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "wonder,land=1"
ALICE = User(type=UserType.SUPER, scram=scram_of(PASSWORD, 4_096))
OWNER = Principal.user("alice")
SECONDS = 20.0


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    given = {
        "server.data_dir": str(tmp_path / "data"),
        "store.segment_bytes": str(SEGMENT_BYTES),
        "kafka.listen": "127.0.0.1:0",
        "kafka.security_protocol": "SASL_PLAINTEXT",
        "security.sasl_mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "security.super_users": "User:app",
        "oauth.jwks": str(tmp_path / "keys.json"),
        "oauth.audience": AUDIENCE,
        "security.delegation_tokens": "true",
        "security.allow_plain_without_tls": "true",
        **{f"{each}.listen": "off" for each in ("remoting", "namesrv", "http")},
    }
    (tmp_path / "keys.json").write_bytes(key_set(jwk("ES256")))
    config = gather(from_pairs([f"{name}={value}" for name, value in given.items()])).config
    async with AsyncExitStack() as resources:
        server = Server(config, given)
        await server.start(resources)
        server.security.users.put({"alice": ALICE})
        yield server


def settings(server: Server, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap_servers": str(server.addresses["kafka"]),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


async def aiokafka(server: Server, mechanism: str, password: str = PASSWORD) -> int:
    producer = AIOKafkaProducer(**settings(server, mechanism, password))
    try:
        await producer.start()
        sent = await producer.send_and_wait("orders", b"one")
    finally:
        await producer.stop()
    return int(sent.offset)


async def kafka_python(server: Server, mechanism: str, password: str = PASSWORD) -> int:
    def send() -> int:
        producer = KafkaProducer(**settings(server, mechanism, password))
        try:
            return int(producer.send("orders", b"one").get(SECONDS).offset)
        finally:
            producer.close()

    return await asyncio.to_thread(send)


async def confluent(server: Server, mechanism: str, password: str = PASSWORD) -> int:
    def send() -> int:
        found: list[int] = []
        errors: list[Any] = []
        producer = ConfluentProducer(
            {
                "bootstrap.servers": str(server.addresses["kafka"]),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": password,
                "error_cb": errors.append,
                "message.timeout.ms": int(SECONDS * 1000),
            }
        )
        producer.produce("orders", b"one", on_delivery=lambda _, sent: found.append(sent.offset()))
        while not found and not errors:
            producer.poll(0.1)
        producer.purge()
        producer.flush(1)
        assert not errors, errors
        return found[0]

    return await asyncio.to_thread(send)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", [aiokafka, kafka_python, confluent])
async def test_a_client_with_the_password_is_served(
    server: Server, client: Callable[..., Awaitable[int]], mechanism: str
) -> None:
    assert await client(server, mechanism) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_client_with_a_wrong_password_is_refused(
    server: Server, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AioKafkaError), caplog.at_level(logging.INFO):
        await aiokafka(server, mechanism, "guess")
    lines = [each.getMessage() for each in caplog.records if each.name.endswith("security.audit")]
    assert any(line.startswith("rejected") and "User:alice" in line for line in lines)
    assert "guess" not in caplog.text


async def test_disabling_a_user_closes_its_connections(server: Server) -> None:
    async with AIOKafkaProducer(**settings(server, "SCRAM-SHA-256")) as producer:
        await producer.send_and_wait("orders", b"one")
        server.security.users.put({"alice": ALICE._replace(status=UserStatus.DISABLED)})
        with pytest.raises(AioKafkaError):
            await aiokafka(server, "SCRAM-SHA-256")
        server.security.users.put({"alice": ALICE})
        await producer.send_and_wait("orders", b"two")


async def test_a_client_logs_in_with_a_token_and_is_disconnected_when_it_is_removed(
    server: Server,
) -> None:
    address = server.addresses["kafka"]
    issued = server.security.tokens.create(
        requester=OWNER, owner=OWNER, renewers=[], lifetime_ms=60_000
    )
    password = b64encode(issued.hmac).decode()

    def log_in(wire: Wire) -> SaslAuthenticateResponse:
        return sasl_wire.scram(wire, issued.id, password, is_token=True)

    wire = await asyncio.to_thread(sasl_wire.opened, (address.host, address.port), log_in)
    request = CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
    )
    answer = await asyncio.to_thread(wire.ask, request, CreateDelegationTokenResponse, 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.principal_name, answer.token_requester_principal_name) == ("alice", "alice")
    server.security.tokens.expire(issued.hmac, OWNER, -1)
    assert await asyncio.to_thread(sasl_wire.is_closed, wire)
    wire.close()


def bearer_token(seconds: float = 600, **more: Any) -> str:
    now = time.time()
    return token(iat=now - 1, exp=now + seconds, **{"sub": "app", **more})


class Provider(AioTokenProvider):  # type: ignore[misc] # untyped
    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        return self._text


class PlainProvider(TokenProvider):  # type: ignore[misc] # untyped
    def __init__(self, text: str) -> None:
        self._text = text

    def token(self) -> str:
        return self._text


async def bearer_by_aiokafka(server: Server, text: str) -> int:
    given = settings(server, "OAUTHBEARER") | {"sasl_oauth_token_provider": Provider(text)}
    producer = AIOKafkaProducer(**given)
    try:
        await producer.start()
        return int((await producer.send_and_wait("orders", b"one")).offset)
    finally:
        await producer.stop()


async def bearer_by_kafka_python(server: Server, text: str) -> int:
    given = settings(server, "OAUTHBEARER") | {"sasl_oauth_token_provider": PlainProvider(text)}

    def send() -> int:
        producer = KafkaProducer(**given)
        try:
            return int(producer.send("orders", b"one").get(SECONDS).offset)
        finally:
            producer.close()

    return await asyncio.to_thread(send)


async def bearer_by_confluent(server: Server, text: str) -> int:
    def send() -> int:
        found: list[int] = []
        producer = ConfluentProducer(
            {
                "bootstrap.servers": str(server.addresses["kafka"]),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _: (text, time.time() + 600),
                "message.timeout.ms": int(SECONDS * 1000),
            }
        )
        producer.produce("orders", b"one", on_delivery=lambda _, sent: found.append(sent.offset()))
        producer.flush(SECONDS)
        return found[0]

    return await asyncio.to_thread(send)


@pytest.mark.parametrize(
    "client", [bearer_by_aiokafka, bearer_by_kafka_python, bearer_by_confluent]
)
async def test_a_client_with_a_bearer_token_is_served(
    server: Server, client: Callable[[Server, str], Awaitable[int]]
) -> None:
    assert await client(server, bearer_token()) == 0


@pytest.mark.parametrize(
    "text", [bearer_token(-60), bearer_token(aud="others"), token("ES256", 1), unsigned()]
)
async def test_a_client_with_another_bearer_token_is_refused(
    server: Server, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "rockgate"), pytest.raises(AioKafkaError):
        await bearer_by_aiokafka(server, text)
    assert "mechanism=OAUTHBEARER" in caplog.text
    assert text.split(".")[1] not in caplog.text
