"""A remoting connection without a socket, for tests of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.gateway.kafka.fakes import LIMITS, HandClock, MemoryTransport

from rockgate.gateway.budget import Budget
from rockgate.gateway.limits import Limits
from rockgate.gateway.receiving import Receiving
from rockgate.gateway.remoting.caller import Caller
from rockgate.gateway.remoting.dispatch import Frame, write
from rockgate.gateway.remoting.session import Session
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

CODE = 28


class Script:
    """Dispatch that answers as a test says: by default, with the body that came."""

    def __init__(self) -> None:
        self.started: list[bytes] = []
        self.futures: dict[bytes, asyncio.Future[Frame]] = {}
        self.requests: dict[bytes, Command] = {}
        self.answer: Callable[[bytes], bytes] = lambda body: body
        self.is_waiting = False

    def dispatch(self, command: Command, caller: Caller) -> Frame | asyncio.Future[Frame]:
        body = bytes(command.body)
        self.started.append(body)
        if not self.is_waiting and not body.startswith(b"wait"):
            return write(command, Command(0, body=self.answer(body)))
        self.requests[body] = command
        self.futures[body] = asyncio.get_running_loop().create_future()
        return self.futures[body]


class Registry:
    """What a door is to a session."""

    def __init__(self) -> None:
        self.sessions: set[Session] = set()
        self.has_room = True

    def opened(self, session: Session) -> bool:
        if self.has_room:
            self.sessions.add(session)
        return self.has_room

    def lost(self, session: Session) -> None:
        self.sessions.discard(session)


class Line:
    """A client on one end, a session on the other, and everything in between in reach."""

    def __init__(
        self,
        *,
        limits: Limits = LIMITS,
        budget: Budget | None = None,
        clock: HandClock | None = None,
    ) -> None:
        self.clock = clock or HandClock()
        self.script = Script()
        self.registry = Registry()
        self.budget = budget or Budget(1 << 30, lambda: None)
        self.client = Connection()
        self.transport = MemoryTransport()
        self.session = Session(
            connection_id=7,
            limits=limits,
            budget=self.budget,
            dispatch=self.script,
            sessions=self.registry,
            clock=self.clock,
            receiving=Receiving(),
        )
        self.transport.session = self.session
        self.told: list[Command] = []
        """Requests of the server's that the client has read."""

    def open(self) -> Line:
        self.session.connection_made(self.transport)
        return self

    def frames(self, *bodies: bytes, oneway: bool = False) -> bytes:
        """The bytes of requests with these bodies."""
        for body in bodies:
            self.client.request(CODE, {}, body, oneway=oneway)
        return b"".join(self.client.data_to_send())

    def send(self, *bodies: bytes, oneway: bool = False) -> None:
        self.receive(self.frames(*bodies, oneway=oneway))

    def receive(self, data: bytes) -> None:
        assert self.transport.reads, "bytes came while reading was paused"
        self.transport.deliver(data)

    def answers(self, size: int | None = None) -> list[bytes]:
        """The bodies of the answers that the client reads now."""
        data = self.transport.read(size)
        commands = self.client.receive_data(data) if data else []
        self.told += [each for each in commands if not each.flag & RESPONSE_FLAG]
        return [bytes(each.body) for each in commands if each.flag & RESPONSE_FLAG]

    async def resolve(self, body: bytes, answer: bytes | None = None) -> None:
        """Let the processor of a waiting request finish, and the loop write its answer."""
        said = Command(0, body=body if answer is None else answer)
        self.script.futures[body].set_result(write(self.script.requests[body], said))
        await turns()


async def turns() -> None:
    """What is called back, and what that has called at the end of the turn."""
    for _ in range(3):
        await asyncio.sleep(0)
