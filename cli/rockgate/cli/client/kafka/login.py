"""Logs a connection in, as a client's config says: PLAIN, SCRAM or OAUTHBEARER."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from rockgate.cli.client.kafka.errors import LoginRefused
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rockgate.protocol.kafka.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rockgate.protocol.sasl.errors import SaslError
from rockgate.protocol.sasl.scram import ScramMechanism
from rockgate.protocol.sasl.scram_client import ScramClient
from rockgate.sdk.client_config import OAUTHBEARER, ClientConfig

T = TypeVar("T")
Ask = Callable[[Any, type[T]], Awaitable[T]]
"""Sends a request on the connection that is logged in, and returns its response."""
_PLAIN: Final = "PLAIN"
_NONCE_BYTES: Final = 24
_END: Final = b"\x01"
"""What an OAUTHBEARER client says after a refusal, to hear that it is over."""


class Login:
    """The login of one client. `run` may be called for many connections, and again for each."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    @property
    def mechanism(self) -> str:
        """The SASL name of the mechanism."""
        return self._config.mechanism

    async def run(self, ask: Ask[Any], peer: str) -> float | None:
        """Log in; returns after how many seconds that has to be done again, None for never."""
        await self._choose(ask, peer)
        steps, answer = self._steps(), b""
        lifetime_ms, step = 0, next(steps)
        while True:
            response = await ask(SaslAuthenticateRequest(auth_bytes=step), SaslAuthenticateResponse)
            if response.error_code:
                raise self._refused(response.error_code, response.error_message, peer)
            lifetime_ms, answer = response.session_lifetime_ms, response.auth_bytes
            try:
                # A proof takes as long as hashing a password.
                found = await asyncio.to_thread(_send, steps, answer)
            except SaslError as error:
                raise self._refused(
                    ErrorCode.SASL_AUTHENTICATION_FAILED, str(error), peer
                ) from None
            if found is None:
                return lifetime_ms / 1000 if lifetime_ms else None
            step = found

    async def _choose(self, ask: Ask[Any], peer: str) -> None:
        """Ask for the mechanism."""
        request = SaslHandshakeRequest(mechanism=self.mechanism)
        response = await ask(request, SaslHandshakeResponse)
        if response.error_code:
            enabled = ", ".join(response.mechanisms) or "none"
            raise self._refused(response.error_code, f"the server supports {enabled}", peer)

    def _refused(self, code: int, message: str | None, peer: str) -> LoginRefused:
        who = self._config.username or "the token"
        return LoginRefused(code, message, what=f"login of {who} at {peer} by {self.mechanism}")

    def _steps(self) -> Any:
        """Yields the client's messages, and is sent the server's."""
        if self.mechanism == _PLAIN:
            return self._plain()
        return self._bearer() if self.mechanism == OAUTHBEARER else self._scram()

    def _plain(self) -> Iterator[bytes]:
        yield f"\0{self._config.username}\0{self._config.password}".encode()

    def _bearer(self) -> Any:
        answer = yield f"n,,\x01auth=Bearer {self._config.token()}\x01\x01".encode()
        if answer:
            # It says why it refuses, and refuses once we have heard.
            yield _END

    def _scram(self) -> Any:
        (mechanism,) = (each for each in ScramMechanism if each.sasl_name == self.mechanism)
        client = ScramClient(
            mechanism,
            self._config.username,
            self._config.password,
            nonce=secrets.token_urlsafe(_NONCE_BYTES).encode(),
            is_token=self._config.is_token,
        )
        challenge = yield client.first()
        client.verify((yield client.final(challenge)))


def _send(steps: Any, answer: bytes) -> bytes | None:
    """The client's next message; None if there is none."""
    try:
        found: bytes = steps.send(answer)
    except StopIteration:
        return None
    return found
