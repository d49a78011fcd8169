"""A RocketMQ client and its session, without a socket between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.gateway import fakes

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Frame, write
from rockgate.gateway.remoting.server.session import Session
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

CODE = 28


class Script(fakes.Script):
    """Dispatch of RocketMQ's listener."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: dict[bytes, Command] = {}
        self.overdue_ms = 1 << 31

    def dispatch(self, command: Command, caller: Caller) -> Frame | asyncio.Future[Frame]:
        body = bytes(command.body)
        self.requests[body] = command
        return self.start(body) or write(command, Command(0, body=self.answer(body) or b""))

    def overdue(self, command: Command, age_ms: int, behind_count: int) -> Frame | None:
        if age_ms < self.overdue_ms:
            return None
        return write(command, Command(2, body=b"%d ms, %d behind" % (age_ms, behind_count)))


class Line(fakes.Line[Session]):
    """A line to RocketMQ's listener."""

    script: Script

    def make(self, parts: Mapping[str, Any]) -> None:
        self.script = Script()
        self.client = Connection()
        self.session = Session(dispatch=self.script, **parts)
        self.told: list[Command] = []
        """Requests by the server that the client has read."""

    def frames(self, *bodies: bytes, oneway: bool = False) -> bytes:
        for body in bodies:
            self.client.request(CODE, {}, body, oneway=oneway)
        return b"".join(self.client.data_to_send())

    def send(self, *bodies: bytes, oneway: bool = False) -> None:
        self.receive(self.frames(*bodies, oneway=oneway))

    def answers(self, size: int | None = None) -> list[bytes]:
        data = self.transport.read(size)
        commands = self.client.receive_data(data) if data else []
        self.told += [each for each in commands if not each.flag & RESPONSE_FLAG]
        return [bytes(each.body) for each in commands if each.flag & RESPONSE_FLAG]

    async def resolve(self, body: bytes) -> None:
        self.script.futures[body].set_result(
            write(self.script.requests[body], Command(0, body=body))
        )
        await fakes.turns()
