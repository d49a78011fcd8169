"""Users, a clock and an audit for tests of authentication; and a line to a listener with SASL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from tests.gateway import fakes
from tests.gateway.fakes import turns

from rockgate.gateway.kafka.authentication.authenticator import Authenticator
from rockgate.gateway.kafka.authentication.mechanism import Mechanism
from rockgate.gateway.kafka.authentication.oauthbearer import OauthBearer
from rockgate.gateway.kafka.authentication.plain import Plain
from rockgate.gateway.kafka.authentication.scram import Scram
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions, unsupported
from rockgate.gateway.kafka.handlers.sasl_authenticate import SaslAuthenticate
from rockgate.gateway.kafka.handlers.sasl_handshake import SaslHandshake
from rockgate.gateway.kafka.request.handler import Call, row
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.gateway.kafka.server.sasl_session import SaslSession
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.delegation.token import TokenCredential
from rockgate.gateway.security.oauth.bearer import Bearer
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka import api
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rockgate.protocol.kafka.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.sasl.errors import WrongCredentials
from rockgate.protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    is_password,
    salted_password,
    unknown_credential,
)
from rockgate.protocol.sasl.scram_client import ScramClient

T = TypeVar("T")
ALICE, BOB = Principal.user("alice"), Principal.user("bob")
PASSWORD = "wonderland"
SECRET = b"decoys"
SECONDS_MAX = 10.0
DELAY_MS = 100
NOW_MS = 1_700_000_000_000


def credential(password: str, mechanism: ScramMechanism) -> ScramCredential:
    """What is stored of a password."""
    salt, iterations = b"salt of twenty bytes", 4_096
    salted = salted_password(mechanism, password.encode(), salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


class People:
    """Users and delegation tokens with their passwords."""

    def __init__(self) -> None:
        self.passwords = {"alice": PASSWORD, "bob": "builder"}
        self.tokens: dict[str, tuple[str, Principal, int]] = {}
        self.bearers: dict[str, Bearer] = {}
        self.disabled: set[str] = set()
        self.checks = 0

    def credential(self, name: str, mechanism: ScramMechanism) -> ScramCredential:
        if name not in self.passwords:
            return unknown_credential(mechanism, SECRET, name)
        return credential(self.passwords[name], mechanism)

    async def check_password(self, name: str, password: str) -> bool:
        self.checks += 1
        await asyncio.sleep(0)
        mechanism = ScramMechanism.SHA_256
        return is_password(mechanism, self.credential(name, mechanism), password.encode())

    def may_log_in(self, name: str) -> bool:
        return name in self.passwords and name not in self.disabled

    def is_usable(self, token_id: str) -> bool:
        return token_id in self.tokens

    async def token_credential(
        self, token_id: str, mechanism: ScramMechanism
    ) -> TokenCredential | None:
        if token_id not in self.tokens:
            return None
        password, owner, expires_ms = self.tokens[token_id]
        return TokenCredential(
            credential=credential(password, mechanism), owner=owner, expires_ms=expires_ms
        )

    async def check(self, token: str) -> Bearer:
        found = self.bearers.get(token)
        if found is None:
            raise WrongCredentials("The signature of the token is wrong.")
        return found

    def mechanisms(self) -> dict[str, Mechanism]:
        made: dict[str, Mechanism] = {
            "PLAIN": Plain(self),
            "OAUTHBEARER": OauthBearer(self, self.disabled.__contains__),
        }
        for each in ScramMechanism:
            made[each.sasl_name] = Scram(each, users=self, tokens=self)
        return made


class Heard:
    """An audit that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []
        self.reasons: list[str] = []

    def authenticated(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str
    ) -> None:
        self.lines.append(("authenticated", str(principal), mechanism))

    def rejected(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str, reason: str
    ) -> None:
        self.lines.append(("rejected", str(principal), mechanism))
        self.reasons.append(reason)


class Reached:
    """A handler that no client may reach before it has authenticated."""

    def __init__(self) -> None:
        self.by: list[Principal] = []

    def handle(self, request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
        self.by.append(call.peer.principal)
        return self.refuse(request, ErrorCode.NONE)

    def refuse(self, request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(error_code=code, host="", error_message=None)


class SaslLine(fakes.Line[SaslSession]):
    """A client, and a session that wants it to authenticate."""

    def __init__(self, *, session_ms_max: int | None = None, **parts: Any) -> None:
        self.people, self.heard, self.reached = People(), Heard(), Reached()
        self.session_ms_max = session_ms_max
        super().__init__(**parts)

    def make(self, parts: Mapping[str, Any]) -> None:
        self.failures = FailedAttempts(DELAY_MS)
        self.authenticator = Authenticator(
            listener="kafka",
            mechanisms=self.people.mechanisms(),
            failures=self.failures,
            audit=self.heard,
            clock=self.clock,
            now_ms=lambda: NOW_MS,
            seconds_max=SECONDS_MAX,
            session_ms_max=self.session_ms_max,
        )
        dispatcher = Dispatcher(
            (
                row(api.FIND_COORDINATOR, lambda _: self.reached, versions="0-0"),
                row(api.SASL_HANDSHAKE, lambda _: SaslHandshake()),
                row(
                    api.API_VERSIONS, lambda _: ApiVersions({}), answer_unknown_version=unsupported
                ),
                row(api.SASL_AUTHENTICATE, lambda _: SaslAuthenticate(), is_bulk=False),
            ),
            None,
        )
        self.client = ClientConnection(client_id="test")
        self.session = SaslSession(dispatch=dispatcher, authenticator=self.authenticator, **parts)

    def frames(self, *bodies: bytes) -> bytes:
        raise NotImplementedError

    def answers(self, size: int | None = None) -> list[bytes]:
        return [bytes(each.body) for each in self.client.receive_data(self.transport.read(size))]

    async def resolve(self, body: bytes) -> None:
        raise NotImplementedError

    # What a client says

    def request(self, key: ApiKey, version: int, request: Any) -> bytes:
        """The bytes of a request."""
        self.client.send(key, version, [encode(request, version)])
        return b"".join(self.client.data_to_send())

    async def call(self, key: ApiKey, version: int, request: Any, response: type[T]) -> T:
        self.receive(self.request(key, version, request))
        await self.settle()
        (answer,) = self.answers()
        return decode(response, version, memoryview(answer))

    async def settle(self) -> None:
        """Let a step, and the delay of its failure, pass."""
        for _ in range(4):
            await turns()
            self.clock.advance(0.001 if self.transport.unread else DELAY_MS / 1000)

    async def handshake(self, mechanism: str, version: int = 1) -> int:
        response = await self.call(
            ApiKey.SASL_HANDSHAKE,
            version,
            SaslHandshakeRequest(mechanism=mechanism),
            SaslHandshakeResponse,
        )
        return response.error_code

    async def step(self, message: bytes, version: int = 2) -> SaslAuthenticateResponse:
        return await self.call(
            ApiKey.SASL_AUTHENTICATE,
            version,
            SaslAuthenticateRequest(auth_bytes=message),
            SaslAuthenticateResponse,
        )

    async def bearer(self, token: str, header: bytes = b"n,,") -> SaslAuthenticateResponse:
        assert await self.handshake("OAUTHBEARER") == ErrorCode.NONE
        return await self.step(header + b"\x01auth=Bearer " + token.encode() + b"\x01\x01")

    async def find(self) -> FindCoordinatorResponse:
        """Ask for what takes authentication."""
        return await self.call(
            ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"), FindCoordinatorResponse
        )

    async def plain(
        self, user: str = "alice", password: str = PASSWORD
    ) -> SaslAuthenticateResponse:
        assert await self.handshake("PLAIN") == ErrorCode.NONE
        return await self.step(f"\0{user}\0{password}".encode())

    async def scram(
        self,
        user: str = "alice",
        password: str = PASSWORD,
        mechanism: ScramMechanism = ScramMechanism.SHA_512,
        *,
        is_token: bool = False,
    ) -> SaslAuthenticateResponse:
        client = ScramClient(mechanism, user, password, nonce=b"fyko", is_token=is_token)
        assert await self.handshake(mechanism.sasl_name) == ErrorCode.NONE
        challenge = await self.step(client.first())
        assert challenge.error_code == ErrorCode.NONE
        last = await self.step(client.final(challenge.auth_bytes))
        if last.error_code == ErrorCode.NONE:
            client.verify(last.auth_bytes)
        return last
