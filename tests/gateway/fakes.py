"""A connection without a socket and time without waiting, for session tests of both protocols."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Self, TypeVar

from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.receive_buffer import ReceiveBuffer
from rockgate.gateway.net.stream import Stream
from rockgate.gateway.security.principal import Principal

S = TypeVar("S", bound="Stream[Any, Any]")


class HandClock:
    """Time that only advances when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[HandTimer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> HandTimer:
        assert delay >= 0
        timer = HandTimer(self, self.now + delay, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time elapse, and run what becomes due, in order."""
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.at <= end]:
            timer = min(due, key=lambda timer: timer.at)
            self.timers.remove(timer)
            self.now = max(self.now, timer.at)
            timer.callback()
        self.now = end


class HandTimer:
    def __init__(self, clock: HandClock, at: float, callback: Callable[[], object]) -> None:
        self.clock, self.at, self.callback = clock, at, callback

    def cancel(self) -> None:
        if self in self.clock.timers:
            self.clock.timers.remove(self)


class MemoryTransport(asyncio.Transport):
    """Stores what is written until the test reads it, as a client would."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 9092), "peername": ("10.0.0.1", 50000)})
        self.certificate: Mapping[str, Any] | None = None
        self.session: asyncio.BufferedProtocol | None = None
        self.unread = bytearray()
        self.writes = 0
        self.high = 64 * 1024
        self.reads = True
        self.is_paused = False
        self.is_closed = False
        self.is_lost = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.certificate if name == "peercert" else super().get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self.high = high

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        assert self.session is not None
        self.writes += 1
        for data in list_of_data:
            self.unread += data
        if len(self.unread) > self.high and not self.is_paused:
            self.is_paused = True
            self.session.pause_writing()

    def read(self, size: int | None = None) -> bytes:
        """Return what the client reads now."""
        assert self.session is not None
        taken = bytes(self.unread if size is None else self.unread[:size])
        del self.unread[: len(taken)]
        if self.is_paused and len(self.unread) <= self.high // 4:
            self.is_paused = False
            self.session.resume_writing()
        self._lose_if_empty()
        return taken

    def deliver(self, data: bytes) -> None:
        """Pass the client's bytes to the buffers of the session."""
        assert self.session is not None
        left = memoryview(data)
        while len(left):
            assert self.reads, "reading was paused with bytes on their way"
            buffer = memoryview(self.session.get_buffer(-1))
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            self.session.buffer_updated(count)
            left = left[count:]

    def pause_reading(self) -> None:
        assert self.reads, "reading was paused already"
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads, "reading was not paused"
        self.reads = True

    def close(self) -> None:
        self.is_closed = True
        self._lose_if_empty()

    def abort(self) -> None:
        self.is_closed = True
        self.unread.clear()
        self._lose_if_empty()

    def lose(self) -> None:
        """Drop the connection, as if the client had died."""
        self.abort()

    def _lose_if_empty(self) -> None:
        assert self.session is not None
        if self.is_closed and not self.unread and not self.is_lost:
            self.is_lost = True
            self.session.connection_lost(None)


class Registry(Generic[S]):
    """The interface of a listener to a session."""

    def __init__(self) -> None:
        self.sessions: set[S] = set()
        self.has_room = True
        self.seconds_max = 10.0
        self.users: list[str] = []
        """Whom sessions have authenticated as; none is let in without `has_room`."""
        self.principal: Principal | None = None
        """Whom a certificate names."""

    def opened(self, session: S) -> bool:
        if self.has_room:
            self.sessions.add(session)
        return self.has_room

    def entered(self, session: S, user: str) -> bool:
        self.users.append(user)
        return self.has_room

    def identify(self, certificate: Mapping[str, Any], host: str, listener: str) -> Principal:
        if self.principal is None:
            raise ValueError("no rule matches")
        return self.principal

    def lost(self, session: S) -> None:
        self.sessions.discard(session)


LIMITS = Limits(
    frame_bytes_max=1 << 20,
    in_flight_max=4,
    in_flight_bytes_max=1 << 20,
    unread_bytes_max=1000,
    idle_seconds_max=600.0,
    frame_seconds_max=60.0,
    unread_seconds_max=30.0,
)


class Script:
    """Dispatch with scripted responses: by default, the body of the request."""

    def __init__(self) -> None:
        self.started: list[bytes] = []
        self.futures: dict[bytes, asyncio.Future[Any]] = {}
        self.answer: Callable[[bytes], bytes | None] = lambda body: body
        """The body of the response to a request that does not wait; None is no response."""
        self.is_waiting = False

    def start(self, body: bytes) -> asyncio.Future[Any] | None:
        """Record a request; return what it waits for, if anything."""
        self.started.append(body)
        if not self.is_waiting and not body.startswith(b"wait"):
            return None
        self.futures[body] = asyncio.get_running_loop().create_future()
        return self.futures[body]


class Line(ABC, Generic[S]):
    """A client on one end, a session on the other, and access to everything in between."""

    session: S
    script: Script

    def __init__(
        self,
        *,
        limits: Limits = LIMITS,
        budget: Budget | None = None,
        clock: HandClock | None = None,
        **more: Any,
    ) -> None:
        self.clock = clock or HandClock()
        self.registry: Registry[S] = Registry()
        self.budget = budget or Budget(1 << 30, lambda: None)
        self.transport = MemoryTransport()
        self.make(
            {
                "connection_id": 7,
                "limits": limits,
                "budget": self.budget,
                "sessions": self.registry,
                "clock": self.clock,
                "receiving": ReceiveBuffer(),
                **more,
            }
        )
        self.transport.session = self.session

    @abstractmethod
    def make(self, parts: Mapping[str, Any]) -> None:
        """Set the session with these parts, its script, and the client at the other end."""

    @abstractmethod
    def frames(self, *bodies: bytes) -> bytes:
        """The bytes of requests with these bodies."""

    @abstractmethod
    def answers(self, size: int | None = None) -> list[bytes]:
        """The bodies of the responses that the client reads now."""

    @abstractmethod
    async def resolve(self, body: bytes) -> None:
        """Respond to a waiting request with its own body."""

    def open(self) -> Self:
        self.session.connection_made(self.transport)
        return self

    def send(self, *bodies: bytes) -> None:
        self.receive(self.frames(*bodies))

    def receive(self, data: bytes) -> None:
        assert self.transport.reads, "bytes came while reading was paused"
        self.transport.deliver(data)


async def turns() -> None:
    """Run pending callbacks, and those that they schedule."""
    for _ in range(3):
        await asyncio.sleep(0)
