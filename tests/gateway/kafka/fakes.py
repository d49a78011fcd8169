"""A Kafka client and its session, without a socket between them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.gateway import fakes

from rockgate.gateway.kafka.request.handler import Answer, Peer
from rockgate.gateway.kafka.server.dispatch import PendingAnswer
from rockgate.gateway.kafka.server.session import Session
from rockgate.protocol.kafka.connection import ClientConnection, Exchange
from rockgate.protocol.kafka.keys import ApiKey


class Script(fakes.Script):
    """Dispatch of Kafka's listener."""

    def dispatch(self, exchange: Exchange, peer: Peer) -> Answer | PendingAnswer:
        body = bytes(exchange.body)
        future = self.start(body)
        if future is not None:
            return _Later(future)
        said = self.answer(body)
        return [] if said is None else [said]


class _Later(PendingAnswer):
    __slots__ = ()

    def __init__(self, future: "asyncio.Future[Answer]") -> None:
        self.future = future

    def answer(self) -> Answer:
        answer: Answer = self.future.result()
        return answer


class Line(fakes.Line[Session]):
    """A line to Kafka's listener."""

    script: Script

    def make(self, parts: Mapping[str, Any]) -> None:
        self.script = Script()
        self.client = ClientConnection(client_id="test")
        self.session = Session(dispatch=self.script, **parts)

    def frames(self, *bodies: bytes) -> bytes:
        for body in bodies:
            self.client.send(ApiKey.API_VERSIONS, 0, [body])
        return b"".join(self.client.data_to_send())

    def answers(self, size: int | None = None) -> list[bytes]:
        return [bytes(each.body) for each in self.client.receive_data(self.transport.read(size))]

    async def resolve(self, body: bytes) -> None:
        self.script.futures[body].set_result([body])
        await asyncio.sleep(0)
