"""One connection to a broker: the sans-IO ClientConnection with a future for each answer.

A transport of asyncio drives it, or a test's own that hands bytes over in memory. A caller that
stops waiting leaves the connection usable: the answer that still comes is dropped.
"""

import asyncio
from collections import deque
from typing import Final, cast

from rockgate.cli.client.kafka.errors import NotKafka, Unreachable
from rockgate.protocol.kafka.connection import Buffer, ClientConnection, Response
from rockgate.protocol.kafka.errors import ProtocolError
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.sdk.client.peer_errors import FIRST_BYTES, closed_because, not_a_port

CLOSE_S: Final = 0.5
"""How long closing waits for the peer to end TLS."""
ANSWER_BYTES_MAX: Final = 512 << 20
"""More than any response to this client; a peer that announces more does not speak Kafka."""


class Link(asyncio.Protocol):
    """The client's end of a connection to `peer`, which is a name for error messages."""

    def __init__(self, peer: str, client_id: str) -> None:
        self._peer = peer
        self._connection = ClientConnection(client_id=client_id, frame_bytes_max=ANSWER_BYTES_MAX)
        self._waiting: deque[asyncio.Future[Response]] = deque()
        self._transport: asyncio.Transport | None = None
        self._lost: Unreachable | None = None
        self._first: bytes | None = b""
        """The first bytes of the peer, until it responds."""
        self._has_tls = False
        self._gone = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; nothing is sent before the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._has_tls = transport.get_extra_info("sslcontext") is not None

    def data_received(self, data: bytes) -> None:
        """Pass every answer that `data` completes to its waiter."""
        if self._first is not None and len(self._first) < FIRST_BYTES:
            self._first = (self._first + data)[:FIRST_BYTES]
        try:
            while responses := self._connection.receive_data(data):
                self._first = None
                for response in responses:
                    future = self._waiting.popleft()
                    if not future.done():
                        future.set_result(response)
                data = b""
        except ProtocolError as broken:
            self._fail_unrecognized(str(broken), f"does not speak the Kafka protocol: {broken}")

    def connection_lost(self, error: Exception | None) -> None:
        """Notify all waiters."""
        self._gone.set()
        why = closed_because(error)
        self._fail_unrecognized(why, why)

    def pause_writing(self) -> None:
        """Let `sent` wait until the transport's buffer has space again."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Resume `sent`."""
        self._may_write.set()

    # What a broker calls

    @property
    def is_lost(self) -> bool:
        """Whether it no longer accepts requests."""
        return self._lost is not None

    def ask(self, key: ApiKey, version: int, buffers: list[Buffer]) -> asyncio.Future[Response]:
        """Send a request; its answer comes as the future's result."""
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._send(key, version, buffers, has_answer=True)
        return future

    def send_oneway(self, key: ApiKey, version: int, buffers: list[Buffer]) -> None:
        """Send a request that has no answer."""
        self._send(key, version, buffers, has_answer=False)

    async def sent(self) -> None:
        """Wait while too much is unsent."""
        await self._may_write.wait()
        if self._lost is not None:
            raise self._lost

    def close(self) -> None:
        """End the connection."""
        self._fail(f"The connection to {self._peer} is closed")

    async def ended(self) -> None:
        """Wait until a connection with TLS has said so; others are closed in the loop's turn."""
        transport = self._transport
        if transport is None or not self._has_tls:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._gone.wait()
        except TimeoutError:
            transport.abort()

    # Private

    def _send(self, key: ApiKey, version: int, buffers: list[Buffer], *, has_answer: bool) -> None:
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None, "not connected"
        self._connection.send(key, version, buffers, has_answer=has_answer)
        self._transport.writelines(self._connection.data_to_send())

    def _fail_unrecognized(self, at_first: str, later: str) -> None:
        """Fail; a peer that never answered may be something else altogether."""
        if self._first is not None and self._waiting:
            self._fail(not_a_port(self._peer, "Kafka", self._first, at_first), NotKafka)
        else:
            self._fail(f"{self._peer} {later}")

    def _fail(self, reason: str, kind: type[Unreachable] = Unreachable) -> None:
        if self._lost is not None:
            return
        self._lost = kind(reason)
        self._may_write.set()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(kind(reason))
        if self._transport is not None:
            self._transport.close()
