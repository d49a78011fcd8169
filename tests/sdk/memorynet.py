"""A network without sockets and a clock without waiting, for tests of the SDK.

    run(scenario)            runs a coroutine on a loop whose time jumps to the next timer
    net = MemoryNet()
    peer = net.listen("b:1") a peer that notes what it is asked and answers by script
    Link("b:1", dial=net.dial)

A peer's script maps codes to what answers them: a function from the request to an answer, to a
future of one, or to None, which leaves it unanswered.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

T = TypeVar("T")
P = ParamSpec("P")
Script = Callable[[Command], "Command | asyncio.Future[Command] | None"]


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a time it tells the loop that the time is there."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "the scenario waits for something that never comes"
        self.now += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(scenario: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that runs on such a loop."""

    @wraps(test)
    def scenario(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return scenario


def now() -> float:
    return asyncio.get_running_loop().time()


async def pass_time(seconds: float) -> None:
    """Wait for that many seconds of the loop's clock."""
    loop = asyncio.get_running_loop()
    passed: asyncio.Future[None] = loop.create_future()
    handle = loop.call_later(seconds, passed.set_result, None)
    try:
        await passed
    finally:
        handle.cancel()


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)


class MemoryTransport(asyncio.Transport):
    def __init__(self, protocol: asyncio.Protocol, peer: Peer) -> None:
        super().__init__()
        self.protocol = protocol
        self.peer = peer
        self.connection = Connection()
        self.write_count = 0
        self._is_closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.write_count += 1
        asyncio.get_running_loop().call_soon(self._arrive, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if self.peer.reads:
            self.lose(None)

    def abort(self) -> None:
        self.lose(None)

    def lose(self, error: Exception | None = None) -> None:
        """Break the connection."""
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, error)

    def tell(self, data: bytes) -> None:
        """Bytes for the client."""
        if not self._is_closing:
            asyncio.get_running_loop().call_soon(self.protocol.data_received, data)

    def flush(self) -> None:
        self.tell(b"".join(bytes(part) for part in self.connection.data_to_send()))

    def _arrive(self, data: bytes) -> None:
        if not self.peer.reads:
            return
        for command in self.connection.receive_data(data):
            if command.flag & RESPONSE_FLAG:
                self.peer.answers.append(command)
                continue
            if command.header is not None:
                # Read by a hand codec, which leaves no text behind.
                command.fields = headers.write(command.header)
            self.peer.asked.append(command)
            script = self.peer.script.get(command.code)
            answer = script(command) if script else Command(0)
            if isinstance(answer, asyncio.Future):
                answer.add_done_callback(partial(self._answer, command))
            elif answer is not None:
                self.connection.respond(command, answer)
                self.flush()

    def _answer(self, command: Command, answer: asyncio.Future[Command]) -> None:
        if not answer.cancelled() and not self._is_closing:
            self.connection.respond(command, answer.result())
            self.flush()


class Peer:
    """One address. `asked` are the requests that came, `answers` the answers to its own."""

    def __init__(self) -> None:
        self.script: dict[int, Script] = {}
        self.asked: list[Command] = []
        self.answers: list[Command] = []
        self.transports: list[MemoryTransport] = []
        self.is_down = False
        self.reads = True
        """One that does not read keeps a closed connection from going, until it is aborted."""
        self.dial_times: list[float] = []

    @property
    def codes(self) -> list[int]:
        return [command.code for command in self.asked]

    def of(self, code: int) -> list[Command]:
        return [command for command in self.asked if command.code == code]

    @property
    def transport(self) -> MemoryTransport:
        return self.transports[-1]

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.transport.connection.request(code, fields, body)
        self.transport.flush()


class MemoryNet:
    def __init__(self) -> None:
        self.peers: dict[str, Peer] = {}

    def listen(self, address: str) -> Peer:
        peer = self.peers[address] = Peer()
        return peer

    async def dial(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, object]:
        peer = self.peers.get(f"{host}:{port}")
        if peer is not None:
            peer.dial_times.append(now())
        if peer is None or peer.is_down:
            raise ConnectionRefusedError("nobody listens")
        protocol = factory()
        transport = MemoryTransport(protocol, peer)
        peer.transports.append(transport)
        protocol.connection_made(transport)
        await asyncio.sleep(0)
        return transport, protocol
