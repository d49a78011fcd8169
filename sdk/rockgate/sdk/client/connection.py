"""One connection to one address, while its owner wants it: docs/reference/sdk.md draws its states.

    request(code, …)    asks and waits for the answer; dials first where nothing is open
    oneway(code, …)     asks for no answer
    respond(…)          answers a request of the peer's
    close()             for good

`channel` is one socket of it, `in_flight` bounds the requests in flight. Time is the loop's; the
transport comes from `dial`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ssl import SSLContext
from typing import Final, TypeAlias

from rockgate.protocol.remoting.codes import request_name
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.protocol.remoting.connection import FRAME_BYTES_MAX, Write, writer
from rockgate.sdk.client.channel import Channel, DeadlineExceeded
from rockgate.sdk.client.in_flight import InFlight
from rockgate.sdk.client.peer_errors import cannot_connect, is_tls_failure
from rockgate.sdk.errors import Closed, TimedOut, TlsFailed, Unreachable
from rockgate.sdk.hooks import RpcHook

Dial: TypeAlias = Callable[
    [Callable[[], asyncio.Protocol], str, int], Awaitable[tuple[asyncio.BaseTransport, object]]
]
"""Connects a protocol to host and port, as `loop.create_connection` does."""

HOST_SIZE_MAX: Final = 255
HEAD_SIZE: Final = 512
"""What a request takes besides its body, roughly."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """The bounds of one connection."""

    in_flight_max: int = 1024
    """Requests that may wait for their answers; a further one waits for its turn."""
    in_flight_bytes_max: int = 32 << 20
    """Bytes of them; a larger request goes alone."""
    waiting_max: int = 50_000
    """Requests that may wait for their turn; a further one is refused at once."""
    dial_timeout_s: float = 3.0
    backoff_s: float = 0.1
    """How long after a failed dial the next may come; doubled each time."""
    backoff_max_s: float = 1.0
    silence_max_s: float = 3.0
    """How long a peer may be silent while requests time out; then it is dialled again."""
    close_timeout_s: float = 1.0
    """How long closing waits for a peer to read what was written."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    """Largest frame that is accepted; a peer that announces a larger one is left."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 host may be in brackets."""
    host, separator, port = address.strip().rpartition(":")
    is_host = 0 < len(host) <= HOST_SIZE_MAX and host.isprintable() and " " not in host
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536
    if not separator or not is_host or not is_port:
        raise ValueError(f"Invalid address {address[:HOST_SIZE_MAX]!r}: expected host:port.")
    return host.strip("[]"), int(port)


async def dial_tcp(
    factory: Callable[[], asyncio.Protocol], host: str, port: int
) -> tuple[asyncio.BaseTransport, object]:
    """Connect over TCP."""
    return await asyncio.get_running_loop().create_connection(factory, host, port)


def dial_tls(context: SSLContext) -> Dial:
    """Connect over TLS; the context says whom to trust."""

    async def dial(
        factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, object]:
        loop = asyncio.get_running_loop()
        return await loop.create_connection(factory, host, port, ssl=context)

    return dial


class Link:
    """The connection to one address.

    `on_open` runs after each dial, before anything is asked, and `on_lost` when that socket ended.
    """

    def __init__(
        self,
        address: str,
        *,
        dial: Dial = dial_tcp,
        settings: LinkSettings | None = None,
        on_request: Callable[[Link, Command], None] | None = None,
        on_open: Callable[[Link], None] | None = None,
        on_lost: Callable[[Link], None] | None = None,
        hooks: Sequence[RpcHook] = (),
    ) -> None:
        self.address = address
        self.hooks = hooks
        self._host, self._port = split_address(address)
        self._dial = dial
        self._settings = settings or LinkSettings()
        self._on_request = on_request
        self._on_open = on_open
        self._on_lost = on_lost
        self._channel: Channel | None = None
        self._dialling: asyncio.Task[Channel] | None = None
        self._in_flight = InFlight(
            count_max=self._settings.in_flight_max,
            size_max=self._settings.in_flight_bytes_max,
            waiting_max=self._settings.waiting_max,
        )
        self._failure_count = 0
        self._not_before = 0.0
        self.is_closed = False
        """Whether it is closed for good."""

    @property
    def is_idle(self) -> bool:
        """Whether it has no pending requests."""
        return (
            not self._in_flight.count
            and not self._in_flight.waiting_count
            and self._dialling is None
        )

    @property
    def is_open(self) -> bool:
        """Whether requests can leave at once."""
        return self._channel is not None and not self._channel.is_lost

    @property
    def retry_in_s(self) -> float:
        """How long it will not be dialled, because that has just failed."""
        if self.is_open or not self._failure_count:
            return 0.0
        return max(0.0, self._not_before - asyncio.get_running_loop().time())

    @property
    def version(self) -> int | None:
        """The peer's version, if it has responded on the open connection."""
        channel = self._channel
        return None if channel is None or channel.is_lost else channel.version

    @property
    def language(self) -> str:
        """The language that the peer reports; known when its version is."""
        return self._channel.language if self._channel is not None else ""

    async def request(
        self, code: int, fields: Fields | None = None, body: Buffer = b"", *, timeout_s: float
    ) -> Command:
        """The answer, whatever its code; waiting for a turn and dialling count as waiting."""
        fields = self._hooked(code, fields, body)
        answer = await self.ask(code, writer(code, fields), body, timeout_s)
        for hook in self.hooks:
            try:
                hook.after_response(self.address, code, answer)
            except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
                # The request has taken effect: the caller must get its response.
                _log.exception("hook failed after a response from %s", self.address)
        return answer

    async def connect(self, timeout_s: float) -> None:
        """Connect, if there is no connection."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened()
        except TimeoutError:
            raise TimedOut(
                f"Connecting to {self.address} timed out after {timeout_s:.3g} s."
            ) from None

    async def ask(self, code: int, write: Write, body: Buffer, timeout_s: float) -> Command:
        """The same for a header that is written by hand, which no hook sees."""
        began = asyncio.get_running_loop().time()
        size = len(body) + HEAD_SIZE
        channel = self._channel
        if channel is None or not channel.is_ready or not self._in_flight.try_take(size):
            channel = await self._turn(code, size, timeout_s)
        try:
            return await channel.ask(code, write, body, began, began + timeout_s)
        except DeadlineExceeded:
            raise TimedOut(
                f"{request_name(code)} to {self.address}: no response within {timeout_s:.3g} s."
            ) from None
        finally:
            self._in_flight.give(size)

    async def oneway(
        self, code: int, fields: Fields | None = None, body: Buffer = b"", *, timeout_s: float
    ) -> None:
        """Ask for no answer; returns when it was handed to the transport."""
        fields = self._hooked(code, fields, body)
        await self.send_oneway(code, writer(code, fields), body, timeout_s)

    async def send_oneway(self, code: int, write: Write, body: Buffer, timeout_s: float) -> None:
        """The same for a header that is written by hand, which no hook sees."""
        channel = self._channel
        if channel is None or not channel.is_ready:
            try:
                async with asyncio.timeout(timeout_s):
                    channel = await self._opened()
                    await channel.writable.wait()
            except TimeoutError:
                self._leave_stuck()
                raise TimedOut(
                    f"{request_name(code)} to {self.address} was not sent in time."
                ) from None
        channel.send_oneway(code, write, body)

    def notify(self, code: int, fields: Fields | None = None, body: Buffer = b"") -> bool:
        """A one-way request now; whether there was a connection that takes it."""
        if self._channel is None or self._channel.is_lost or not self._channel.is_ready:
            return False
        try:
            fields = self._hooked(code, fields, body)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("hook rejected %s to %s", request_name(code), self.address)
            return False
        self._channel.send_oneway(code, writer(code, fields), body)
        return True

    def respond(self, request: Command, answer: Command) -> None:
        """Answer a request of the peer's; nothing if the connection is gone meanwhile."""
        if self._channel is not None and not self._channel.is_lost:
            self._channel.respond(request, answer)

    async def close(self) -> None:
        """Close for good: pending requests fail, and what is queued is written first.

        A peer that does not read is dropped after a second, and at once if this is cancelled.
        """
        self.is_closed = True
        dialling, channel = self._dialling, self._channel
        if dialling is not None:
            dialling.cancel()
        if channel is not None:
            channel.close(Closed(f"The connection to {self.address} was closed."))
        try:
            async with asyncio.timeout(self._settings.close_timeout_s):
                if dialling is not None:
                    await asyncio.wait([dialling])
                if channel is not None:
                    await channel.gone.wait()
        except TimeoutError:
            _log.warning("%s does not read; closing with data unsent", self.address)
        finally:
            self.abort()

    def abort(self) -> None:
        """Close for good and at once, whatever is queued."""
        self.is_closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._channel is not None:
            self._channel.abort(Closed(f"The connection to {self.address} was closed."))

    # Private

    def _hooked(self, code: int, fields: Fields | None, body: Buffer) -> Fields:
        fields = {} if fields is None else fields
        for hook in self.hooks:
            hook.before_request(self.address, code, fields, body)
        return fields

    async def _turn(self, code: int, size: int, timeout_s: float) -> Channel:
        """Reserve capacity for a request and get a usable channel, in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._in_flight.take(size)
                try:
                    channel = await self._opened()
                    await channel.writable.wait()
                except BaseException:
                    self._in_flight.give(size)
                    raise
                return channel
        except TimeoutError:
            self._leave_stuck()
            raise TimedOut(
                f"{request_name(code)} to {self.address} was not sent within {timeout_s:.3g} s."
            ) from None

    async def _opened(self) -> Channel:
        if self.is_closed:
            raise Closed(f"The connection to {self.address} is closed.")
        if self._channel is not None and not self._channel.is_lost:
            return self._channel
        if self._dialling is None:
            left = self.retry_in_s
            if left > 0:
                raise Unreachable(
                    f"{self.address} was unreachable; the next attempt is in {left:.3g} s.", left
                )
            self._dialling = asyncio.get_running_loop().create_task(self._connect())
            self._dialling.add_done_callback(self._dialled)
        dialling = self._dialling
        try:
            # Others wait for the same dial: one that gives up must not end it.
            return await asyncio.shield(dialling)
        except asyncio.CancelledError:
            if not dialling.cancelled():
                raise
            raise Closed(f"The connection to {self.address} was closed.") from None

    async def _connect(self) -> Channel:
        channel = Channel(
            self,
            silence_max_s=self._settings.silence_max_s,
            frame_bytes_max=self._settings.frame_bytes_max,
        )
        try:
            async with asyncio.timeout(self._settings.dial_timeout_s):
                await self._dial(lambda: channel, self._host, self._port)
        except (OSError, ValueError) as failed:  # TimeoutError is one; a host may be no name at all
            channel.abort(Unreachable(f"Connecting to {self.address} failed."))
            raise self._failed(failed) from None
        except BaseException:
            channel.abort(Closed(f"The connection to {self.address} was closed."))
            raise
        _log.info("connected to %s", self.address)
        self._failure_count = 0
        self._channel = channel
        if self._on_open is not None:
            self._on_open(self)
        return channel

    def _failed(self, failed: Exception) -> Unreachable:
        """A dial failed: how long none will be tried. Logged once, until one succeeds."""
        self._failure_count += 1
        wait = self._settings.backoff_s * 2 ** min(self._failure_count - 1, 16)
        wait = min(wait, self._settings.backoff_max_s)
        self._not_before = asyncio.get_running_loop().time() + wait
        reason = cannot_connect(self._host, self.address, failed).rstrip(".")
        level = logging.WARNING if self._failure_count == 1 else logging.DEBUG
        _log.log(level, "%s", reason)
        kind = TlsFailed if is_tls_failure(failed) else Unreachable
        return kind(f"{reason}.", wait)

    def _leave_stuck(self) -> None:
        """Something could not leave in time: a peer that reads nothing is dialled again."""
        if self._channel is not None:
            self._channel.leave_stuck()

    def _dialled(self, task: asyncio.Task[Channel]) -> None:
        self._dialling = None
        if not task.cancelled():
            # Retrieved here, because all waiters may have given up.
            task.exception()

    def lost(self, reason: Exception) -> None:
        """The socket is closed."""
        if isinstance(reason, Closed):
            _log.debug("%s", reason)
        else:
            _log.warning("%s", reason)
        if self._on_lost is not None:
            self._on_lost(self)

    def asked(self, command: Command) -> None:
        """The peer sent a request."""
        if self._on_request is not None:
            self._on_request(self, command)
