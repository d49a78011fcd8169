"""RocketMQ's listener of one server, over the SDK's connection; dialled when it is first asked.

What an operator asks there has codes of our own (docs/internals/remoting.md). A server that is not
rockgate answers them with REQUEST_CODE_NOT_SUPPORTED, which becomes NotServed.
"""

from __future__ import annotations

import logging
from ssl import SSLContext
from typing import Final, NoReturn, Self, TypeVar

import msgspec

from rockgate.cli.client.kafka.errors import (
    BrokerUnreachable,
    Declined,
    NotRocketMQ,
    NotServed,
    TlsFailed,
    Unreachable,
    Unusable,
)
from rockgate.gateway.net.address import Address
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode, request_name
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.sdk import errors as sdk
from rockgate.sdk.client.connection import Link, LinkSettings, dial_tcp, dial_tls
from rockgate.sdk.credentials import Credentials, Signing

T = TypeVar("T")

PORT: Final = 10911
RESPONSE_BYTES_MAX: Final = 64 << 20

# A command says itself what went wrong; without a handler Python would print warnings besides.
logging.getLogger("rockgate.sdk").addHandler(logging.NullHandler())


class RemotingConnection:
    """The connection to `address`. Once it has failed, it fails with the same reason."""

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float,
        tls: SSLContext | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """With `credentials` every request is signed."""
        self.address = address
        self._timeout_s = timeout_s
        settings = LinkSettings(
            # `connect` applies the command's own timeout, and reports it.
            dial_timeout_s=timeout_s + 1,
            frame_bytes_max=RESPONSE_BYTES_MAX,
        )
        self._link = Link(
            str(address),
            settings=settings,
            dial=dial_tcp if tls is None else dial_tls(tls),
            hooks=() if credentials is None else (Signing(credentials),),
        )
        self.is_encrypted = tls is not None
        self._failure: Unreachable | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._link.close()

    async def ask(
        self, code: RequestCode, header: msgspec.Struct, answer: type[T], body: Buffer = b""
    ) -> T:
        """The decoded response to one of our own requests."""
        response = await self.command(code, header, body)
        try:
            return msgspec.json.decode(response.body, type=answer)
        except msgspec.MsgspecError as error:
            raise Unusable(f"Cannot decode the response from {self.address}: {error}") from error

    async def command(
        self, code: RequestCode, header: msgspec.Struct, body: Buffer = b""
    ) -> Command:
        """The response to any request; Declined where the server rejects it."""
        await self._connect()
        try:
            response = await self._link.request(
                code, headers.write(header), body, timeout_s=self._timeout_s
            )
        except sdk.TimedOut:
            if self._link.version is None:
                raise NotRocketMQ(
                    f"{self.address} accepted the connection but did not respond within "
                    f"{self._timeout_s:g} s: it is busy, or not a RocketMQ port"
                ) from None
            raise BrokerUnreachable(
                f"{self.address} did not respond within {self._timeout_s:g} s"
            ) from None
        except sdk.Unreachable as error:
            self._fail(error)
        if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NotServed(
                f"{self.address} does not support {request_name(code)}:"
                " it is not rockgate, or too old"
            )
        if response.code != ResponseCode.SUCCESS:
            raise Declined(response.code, response.remark)
        return response

    async def _connect(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            await self._link.connect(self._timeout_s)
        except sdk.TimedOut:
            raise BrokerUnreachable(
                f"Connecting to {self.address} timed out after {self._timeout_s:g} s"
            ) from None
        except sdk.Unreachable as error:
            self._fail(error)

    def _fail(self, error: sdk.Unreachable) -> NoReturn:
        kind: type[Unreachable] = BrokerUnreachable
        if isinstance(error, sdk.TlsFailed):
            kind = TlsFailed
        elif isinstance(error, sdk.NotRocketMQ):
            kind = NotRocketMQ
        self._failure = kind(str(error))
        raise self._failure from error
