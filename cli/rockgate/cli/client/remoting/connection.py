"""RocketMQ's listener of one server: one connection, dialled when it is first asked.

What an operator asks there has codes of our own (docs/internals/remoting.md). A server that is no
rockgate answers them with REQUEST_CODE_NOT_SUPPORTED, which becomes NotServed.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self, TypeVar, cast

import msgspec

from rockgate.cli.client.kafka.broker import reason_of
from rockgate.cli.client.kafka.errors import (
    BrokerUnreachable,
    Declined,
    NotRocketMQ,
    NotServed,
    Unusable,
)
from rockgate.cli.client.kafka.strangers import FIRST_BYTES, not_a_port
from rockgate.gateway.net.address import Address
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode, request_name
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.connection import Connection

T = TypeVar("T")

PORT: Final = 10911
ANSWER_BYTES_MAX: Final = 64 << 20


class RemotingConnection(asyncio.Protocol):
    """The client's end of a remoting connection to `address`."""

    def __init__(self, address: Address, *, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._connection = Connection(frame_bytes_max=ANSWER_BYTES_MAX)
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self._transport: asyncio.Transport | None = None
        self._lost: BrokerUnreachable | None = None
        self._first: bytes | None = b""
        """How the peer began, until it gave an answer."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            self._transport.close()
        # Transports close in the loop's next turn, which the end of a command would not grant.
        await asyncio.sleep(0)

    async def ask(
        self, code: RequestCode, header: msgspec.Struct, answer: type[T], body: Buffer = b""
    ) -> T:
        """What the server says to a request of ours, as a value."""
        told = await self.command(code, header, body)
        try:
            return msgspec.json.decode(told.body, type=answer)
        except msgspec.MsgspecError as error:
            raise Unusable(f"Cannot decode the response from {self.address}: {error}") from error

    async def command(
        self, code: RequestCode, header: msgspec.Struct, body: Buffer = b""
    ) -> Command:
        """The answer to any request; Declined where it says no."""
        await self._open()
        assert self._transport is not None
        number = self._connection.request(code, headers.write(header), body)
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._transport.writelines(self._connection.data_to_send())
        try:
            async with asyncio.timeout(self._timeout_s):
                told = await future
        except TimeoutError:
            raise BrokerUnreachable(
                f"{self.address} did not respond within {self._timeout_s:g} s"
            ) from None
        if told.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NotServed(
                f"{self.address} does not support {request_name(code)}:"
                " it is not rockgate, or too old"
            )
        if told.code != ResponseCode.SUCCESS:
            raise Declined(told.code, told.remark)
        return told

    async def _open(self) -> None:
        if self._lost is not None:
            raise self._lost
        if self._transport is not None:
            return
        loop, address = asyncio.get_running_loop(), self.address
        try:
            async with asyncio.timeout(self._timeout_s):
                await loop.create_connection(lambda: self, address.host, address.port)
        except TimeoutError:
            raise BrokerUnreachable(
                f"Connecting to {address} timed out after {self._timeout_s:g} s"
            ) from None
        except OSError as error:
            raise BrokerUnreachable(f"Cannot connect to {address}: {reason_of(error)}") from error

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; nothing is sent before the first request."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Give every answer that `data` completes to who waits for it."""
        if self._first is not None and len(self._first) < FIRST_BYTES:
            self._first = (self._first + data)[:FIRST_BYTES]
        try:
            while commands := self._connection.receive_data(data):
                self._first = None
                for command in commands:
                    future = self._waiting.pop(command.opaque, None)
                    if command.is_answer and future is not None and not future.done():
                        future.set_result(command)
                data = b""
        except ProtocolError as broken:
            self._fail_strangely(str(broken), f"does not speak the RocketMQ protocol: {broken}")

    def connection_lost(self, error: Exception | None) -> None:
        """Tell everybody who waits."""
        why = "closed the connection" + (f": {error}" if error else "")
        self._fail_strangely(why, why)

    def _fail_strangely(self, at_first: str, later: str) -> None:
        """Fail; a peer that never answered may be something else altogether."""
        if self._first is not None and self._waiting:
            reason = not_a_port(str(self.address), "RocketMQ", self._first, at_first)
            self._fail(reason, NotRocketMQ)
        else:
            self._fail(f"{self.address} {later}")

    def _fail(self, reason: str, kind: type[BrokerUnreachable] = BrokerUnreachable) -> None:
        if self._lost is not None:
            return
        self._lost = kind(reason)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(kind(reason))
        self._waiting.clear()
        if self._transport is not None:
            self._transport.close()
