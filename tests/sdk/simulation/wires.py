"""A network in memory that has what networks have: delays, stalls, cuts, and ends that are gone.

    wires = Wires(seed)
    wires.nodes["a:1"] = node              something that accepts connections
    Client(…, dial=wires.dialler("m1"))    a process that makes them

Each connection draws from a random source of its own, so that what happens on one does not depend
on the order in which others are served. Bytes arrive in order; those that meet a cut wait for its
end, as TCP has it, or are lost with their connection.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

from tests.sdk.memorynet import pass_time

from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.sdk.client.connection import Dial

BLOCKED_S: Final = 1.0
"""How often bytes that meet a cut are tried again."""
STALL: Final = 0.01
STALL_S_MAX: Final = 4.0


class Node(Protocol):
    """What listens at an address."""

    is_up: bool
    is_frozen: bool
    """It accepts, and reads nothing."""

    def accepted(self, end: End) -> None:
        """A connection was made."""

    def asked(self, end: End, command: Command) -> None:
        """A request came."""

    def lost(self, end: End) -> None:
        """A connection is gone."""


class Wires:
    """All connections between processes and nodes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.nodes: dict[str, Node] = {}
        self.open: set[Wire] = set()
        self.is_calm = False
        self.dead: set[str] = set()
        """Processes that are no more."""
        self._cuts: dict[tuple[str, str], float] = {}
        self._dial_counts: dict[tuple[str, str], int] = {}

    def dialler(self, process: str) -> Dial:
        """How one process makes connections."""

        async def dial(
            factory: Callable[[], asyncio.Protocol], host: str, port: int
        ) -> tuple[asyncio.BaseTransport, object]:
            return await self._dial(process, factory, f"{host}:{port}")

        return dial

    def cut(self, process: str, address: str, seconds: float) -> None:
        """Let nothing through between these two for a while."""
        self._cuts[process, address] = asyncio.get_running_loop().time() + seconds

    def calm(self) -> None:
        """No more faults."""
        self.is_calm = True
        self._cuts.clear()

    def reset(self, address: str, process: str | None = None) -> None:
        """Break the connections of a node, to one process or to all."""
        for wire in self.of(address, process):
            wire.break_off()

    def of(self, address: str, process: str | None = None) -> list[Wire]:
        """The connections of a node, in the order in which they were made."""
        return sorted(
            (
                wire
                for wire in self.open
                if wire.address == address and process in (None, wire.process)
            ),
            key=lambda wire: (wire.process, wire.number),
        )

    def kill(self, process: str, *, is_silent: bool) -> None:
        """A process has ended; if silent, without notice, as when a machine loses its power."""
        self.dead.add(process)
        for wire in sorted(self.open, key=lambda each: (each.address, each.number)):
            if wire.process == process:
                wire.vanish(is_silent=is_silent)

    def is_blocked(self, process: str, address: str) -> bool:
        """Whether nothing gets through now."""
        until_s = self._cuts.get((process, address), 0.0)
        return asyncio.get_running_loop().time() < until_s or self.nodes[address].is_frozen

    async def _dial(
        self, process: str, factory: Callable[[], asyncio.Protocol], address: str
    ) -> tuple[asyncio.BaseTransport, object]:
        number = self._dial_counts[process, address] = (
            self._dial_counts.get((process, address), 0) + 1
        )
        random = Random(f"{self._seed}/{process}/{address}/{number}")
        await pass_time(random.uniform(0.0005, 0.005))
        until_s = self._cuts.get((process, address), 0.0)
        while asyncio.get_running_loop().time() < until_s:
            await pass_time(BLOCKED_S)
        if process in self.dead or not self.nodes[address].is_up:
            raise ConnectionRefusedError("nobody listens")
        protocol = factory()
        wire = Wire(self, process, address, protocol, random, number)
        self.open.add(wire)
        protocol.connection_made(wire)
        self.nodes[address].accepted(wire.end)
        return wire, protocol


class End:
    """The node's end of a connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._connection = Connection()
        self.is_open = True

    @property
    def process(self) -> str:
        """Who is at the other end."""
        return self._wire.process

    def respond(self, request: Command, answer: Command) -> None:
        """Answer a request."""
        if self.is_open:
            self._connection.respond(request, answer)
            self._flush()

    def notify(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        """A request of the node's that wants no answer."""
        if self.is_open:
            self._connection.request(code, fields, body, oneway=True)
            self._flush()

    def close(self) -> None:
        """The node has had enough of it."""
        self._wire.break_off()

    def received(self, data: bytes) -> None:
        """Bytes of the client's."""
        node = self._wire.node
        for command in self._connection.receive_data(data):
            if not command.flag & RESPONSE_FLAG and self.is_open:
                node.asked(self, command)

    def _flush(self) -> None:
        data = b"".join(bytes(part) for part in self._connection.data_to_send())
        if data:
            self._wire.to_client.put(data)


class _Way:
    """One direction: what was put in comes out in order, later."""

    def __init__(self, wire: Wire, deliver: Callable[[bytes | None], None]) -> None:
        self._wire = wire
        self._deliver = deliver
        self._waiting: deque[bytes | None] = deque()
        self._at = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def put(self, data: bytes | None) -> None:
        """Bytes, or None for the end."""
        self._waiting.append(data)
        if self._handle is None:
            self._plan(self._wire.latency())

    def drop(self) -> None:
        """What is under way is lost."""
        self._waiting.clear()

    def _plan(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._at = max(self._at, loop.time() + seconds)
        self._handle = loop.call_at(self._at, self._due, context=self._wire.context)

    def _due(self) -> None:
        self._handle = None
        if not self._waiting:
            return
        if self._wire.is_blocked:
            self._plan(BLOCKED_S)
            return
        # What was written meanwhile comes along, as one segment after the other does.
        while self._waiting:
            self._deliver(self._waiting.popleft())


class Wire(asyncio.Transport):
    """One connection, as the client's loop sees it."""

    def __init__(
        self,
        wires: Wires,
        process: str,
        address: str,
        protocol: asyncio.Protocol,
        random: Random,
        number: int,
    ) -> None:
        super().__init__()
        self._wires = wires
        self.process, self.address, self.number = process, address, number
        self._protocol = protocol
        self._random = random
        # Tasks that an answer starts belong to the process that has asked.
        self.context = contextvars.copy_context()
        self.end = End(self)
        self.to_node = _Way(self, self._arrived)
        self.to_client = _Way(self, self._returned)
        self._is_closing = False

    @property
    def node(self) -> Node:
        return self._wires.nodes[self.address]

    @property
    def is_blocked(self) -> bool:
        return self._wires.is_blocked(self.process, self.address)

    def latency(self) -> float:
        if not self._wires.is_calm and self._random.random() < STALL:
            return self._random.uniform(0.05, STALL_S_MAX)
        return self._random.uniform(0.0002, 0.005)

    # What the client does with it

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self.to_node.put(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._gone(None)

    def abort(self) -> None:
        # A kernel may deliver later what a client has given up, which no client can help.
        self.to_node.drop()
        self._gone(None)

    # Its end

    def break_off(self) -> None:
        """The node is gone, or wants it no more."""
        if self.end.is_open:
            self.end.is_open = False
            self.to_node.drop()
            self.to_client.put(None)
            self.node.lost(self.end)

    def vanish(self, *, is_silent: bool) -> None:
        """The client's process is gone."""
        self.to_node.drop()
        self.to_client.drop()
        self._is_closing = True
        self._wires.open.discard(self)
        asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)
        if not is_silent:
            self.to_node.put(None)

    def _gone(self, error: Exception | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._wires.open.discard(self)
            self.to_client.drop()
            self.to_node.put(None)
            loop = asyncio.get_running_loop()
            loop.call_soon(self._protocol.connection_lost, error, context=self.context)

    def _arrived(self, data: bytes | None) -> None:
        if not self.end.is_open:
            return
        if data is None:
            self.end.is_open = False
            self.node.lost(self.end)
        else:
            self.end.received(data)

    def _returned(self, data: bytes | None) -> None:
        if self._is_closing:
            return
        if data is None:
            self._gone(ConnectionResetError("the peer is gone"))
        else:
            self._protocol.data_received(data)
