"""A world in which clients pop: everything of it but the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.gateway.fakes import turns
from tests.gateway.remoting.popclient import Taken, handle_fields, taken
from tests.gateway.remoting.pullworld import PullWorld
from tests.gateway.remoting.world import Everybody, FakeCaller
from tests.waiting import until

from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets, Resets
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.pop.acquirer import Acquirer
from rockgate.gateway.remoting.pop.clock_steps import ClockSteps
from rockgate.gateway.remoting.pop.receipts import Receipts
from rockgate.gateway.remoting.pop.requests import PopRequests
from rockgate.gateway.remoting.pop.revival import Revival
from rockgate.gateway.remoting.server.dispatch import Dispatcher
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.message import Message
from rockgate.store.inflight.fold import MessagesInFlight
from rockgate.store.inflight.window import Window
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


@dataclass
class Delivery:
    """A message as a client has it, with its handle."""

    message: Message
    handle: str
    topic: str
    """The topic that the handle is about."""

    @property
    def body(self) -> bytes:
        return self.message.body


class PopWorld(PullWorld):
    """The topic `orders` of two queues, and clients of the group `group` that pop from it."""

    invisible_ms = 60_000

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.in_flight = MessagesInFlight(topics)
        return [*super().make_folds(journal, topics), self.in_flight]

    def open(self) -> None:
        super().open()
        self.caller = FakeCaller(1)
        store = self.store
        self.offsets = ConsumerOffsets(
            store.progress, Everybody(), Resets(self.poll_registry.wake_changed)
        )
        wake = self.poll_registry.wake_changed
        self.clock_steps = ClockSteps(
            in_flight=self.in_flight, journal=store.appender, clock=store.clock
        )
        self.acquirer = Acquirer(
            in_flight=self.in_flight,
            journal=store.appender,
            puller=self.puller,
            queues=store.queues,
            topics=self.book,
            offsets=self.offsets,
            clock=self.clock_steps,
            broker_name="here",
        )
        self.receipts = Receipts(
            in_flight=self.in_flight, journal=store.appender, clock=self.clock_steps, wake=wake
        )
        self.revival = Revival(
            in_flight=self.in_flight,
            journal=store.appender,
            puller=self.puller,
            queues=store.queues,
            lookup=store.topics,
            topics=self.book,
            progress=store.progress,
            clock=store.clock,
            wake=wake,
        )
        self.polls = LongPolls(connection_max=3, bytes_max=1 << 20)
        self.requests = PopRequests(
            acquirer=self.acquirer,
            receipts=self.receipts,
            puller=self.puller,
            topics=self.book,
            queues=store.queues,
            settings=self.settings,
            poll_registry=self.poll_registry,
            polls=self.polls,
            durability=self.durability,
            size_max=1 << 20,
            suspend_ms_max=30_000,
        )
        requests = self.requests
        self._pops = Dispatcher(
            {
                RequestCode.POP_MESSAGE: requests.pop,
                RequestCode.ACK_MESSAGE: requests.ack,
                RequestCode.BATCH_ACK_MESSAGE: requests.batch_ack,
                RequestCode.CHANGE_MESSAGE_INVISIBLETIME: requests.change_invisible,
                RequestCode.PEEK_MESSAGE: requests.peek,
                RequestCode.NOTIFICATION: requests.notification,
                RequestCode.POLLING_INFO: requests.polling_info,
                RequestCode.POP_ROLLBACK: requests.rollback,
            }
        )

    # Asking

    def ask(
        self, code: RequestCode, fields: dict[str, object], body: bytes = b""
    ) -> asyncio.Future[Command]:
        """Send a request; its answer is there at once unless it waits."""
        texts: Fields = {name: str(value) for name, value in fields.items() if value is not None}
        opaque = self._client.request(code, texts)
        self._client.data_to_send()
        told: asyncio.Future[Command] = asyncio.get_running_loop().create_future()

        def answered(frame: list[Any]) -> None:
            [command] = self._client.receive_data(b"".join(map(bytes, frame)))
            told.set_result(command)

        request = Command(code, texts, body=body, opaque=opaque)
        outcome = self._pops.dispatch(request, self.caller)  # type: ignore[arg-type]
        if isinstance(outcome, list):
            answered(outcome)
        else:
            outcome.add_done_callback(lambda done: answered(done.result()))
        return told

    async def answer(
        self, code: RequestCode, fields: dict[str, object], body: bytes = b""
    ) -> Command:
        told = self.ask(code, fields, body)
        await turns()
        if not told.done():
            await until(told.done, "it is answered")
        return told.result()

    def pop_fields(self, **more: object) -> dict[str, object]:
        return {
            "consumerGroup": "group",
            "topic": "orders",
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": self.invisible_ms,
            "pollTime": 0,
            "bornTime": 0,
            "initMode": 0,
            "exp": "*",
            "expType": "TAG",
            **more,
        }

    async def pop(self, **more: object) -> list[Delivery]:
        """Pop; nothing if there is nothing."""
        return self.deliveries(
            await self.answer(RequestCode.POP_MESSAGE, self.pop_fields(**more)), **more
        )

    def deliveries(self, answer: Command, **more: object) -> list[Delivery]:
        """What a client makes of the answer to a pop."""
        if answer.code == ResponseCode.POLLING_TIMEOUT:
            return []
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        group, topic = str(more.get("consumerGroup", "group")), str(more.get("topic", "orders"))
        return [Delivery(*each) for each in taken(answer, topic, group)]

    async def ack(self, delivery: Delivery, group: str = "group") -> int:
        fields = self.handle_fields(delivery, group)
        return (await self.answer(RequestCode.ACK_MESSAGE, fields)).code

    async def extend(self, delivery: Delivery, invisible_ms: int) -> Delivery:
        """Change the invisible time; what comes back has the new handle."""
        fields = {**self.handle_fields(delivery), "invisibleTime": invisible_ms}
        answer = await self.answer(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        parts = delivery.handle.split(" ")
        parts[1:4] = [answer.fields[name] for name in ("popTime", "invisibleTime", "reviveQid")]
        return Delivery(delivery.message, " ".join(parts), delivery.topic)

    def handle_fields(self, delivery: Delivery, group: str = "group") -> dict[str, object]:
        return handle_fields(Taken(delivery.message, delivery.handle, delivery.topic), group)

    # Time and state

    async def expire(self, milliseconds: int = 61_000) -> None:
        """Let time pass, and what has expired come again."""
        self.pass_time(milliseconds)
        while self.revival.expire():
            pass
        await turns()
        if self.revival.is_reading:
            # A thread loads cold entries, and they are read again a second later.
            await until(lambda: not self.revival.is_reading, "what was cold is there")
            await self.expire(1_250)

    def follow(self) -> int:
        """Let deadlines follow the clock; return how many steps it took."""
        steps = 1
        while self.clock_steps.follow():
            steps += 1
        return steps

    def commit(self) -> None:
        """Let progress be committed."""
        self.pass_time(5_000)
        while self.revival.commit():
            pass

    def committed(self, queue: int = 0, group: str = "group", topic: str = "orders") -> int | None:
        return self.offsets.committed(group, self.store.topics.get(topic), queue)

    def window(self, queue: int = 0, group: str = "group", topic: str = "orders") -> Window:
        found = self.in_flight.find(group, self.store.topics.get(topic).id, queue)
        assert found is not None
        return found
