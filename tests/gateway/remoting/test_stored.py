"""What becomes of a send, whole: told apart, stored with all that it says, answered with a code."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, cast

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.client import Client, messages, properties
from tests.gateway.remoting.world import FakeCaller, RemotingWorld
from tests.world import CONFIG

from rockgate.gateway.remoting.messages.sender import Sender
from rockgate.gateway.remoting.processors.send import Sends
from rockgate.gateway.remoting.server.dispatch import Dispatcher
from rockgate.protocol.entry import read
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.protocol.remoting.message import encode_batch
from rockgate.store import errors

BORN_MS = 1_700_000_000_123
SHORT = {"producerGroup": "a", "topic": "b", "defaultTopic": "c", "defaultTopicQueueNums": "d"}
SHORT |= {"queueId": "e", "sysFlag": "f", "bornTimestamp": "g", "flag": "h", "properties": "i"}
SHORT |= {"reconsumeTimes": "j", "unitMode": "k", "batch": "m"}


def fields_of(topic: str, **more: Any) -> dict[str, Any]:
    return {
        "producerGroup": "g",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": BORN_MS,
        "flag": 7,
        "properties": properties({"TAGS": "T", "KEYS": "k", "color": "blue"}),
        "reconsumeTimes": 3,
        "unitMode": "false",
        "batch": "false",
        **more,
    }


def shortened(fields: dict[str, Any]) -> dict[str, Any]:
    return {SHORT[name]: value for name, value in fields.items()}


@pytest.mark.row("SND-6")
@pytest.mark.parametrize("code", [10, 310])
def test_all_that_a_send_says_reaches_the_consumer(broker: Client, code: int) -> None:
    topic = f"whole-{code}"
    fields = fields_of(topic)
    answer = broker.ask(code, fields if code == 10 else shortened(fields), b"body")
    assert answer.code == 0
    [message] = messages(broker.pull(topic))
    assert (message.topic, message.queue_id, message.body) == (topic, 0, b"body")
    assert message.properties == {"TAGS": "T", "KEYS": "k", "color": "blue"}
    assert (message.flag, message.born_ms, message.reconsume_times) == (7, BORN_MS, 3)
    host, port = broker.socket.getsockname()
    assert message.born_host == (socket.inet_aton(host), port)


@pytest.mark.row("SND-2")
@pytest.mark.parametrize("delay_ms", [None, "60000"])
def test_an_answer_has_the_number_the_region_and_whether_to_trace(
    broker: Client, delay_ms: str | None
) -> None:
    """One that can be taken back is answered by the plain writer, the others by the quick one."""
    times = {} if delay_ms is None else {"TIMER_DELAY_MS": delay_ms}
    given = properties({"UNIQ_KEY": "u", **times})
    fields = shortened(fields_of("answered", properties=given))
    opaques = [broker.send(310, fields, b"x") for _ in range(3)]
    for opaque in reversed(opaques):
        answer = broker.answer(opaque)
        assert (answer.code, answer.opaque) == (0, opaque)
        assert answer.fields["MSG_REGION"] == "DefaultRegion"
        assert answer.fields["TRACE_ON"] == "true"
        assert ("recallHandle" in answer.fields) == (delay_ms is not None)


def test_one_message_a_batch_and_one_given_back_are_distinguished(broker: Client) -> None:
    broker.heartbeat("c", "told-apart", "apart")
    parts = [(0, b"b%d" % n, properties({"TAGS": f"t{n}"}).encode()) for n in range(2)]
    batch = encode_batch(parts)
    one = shortened(fields_of("apart"))
    assert broker.ask(310, one, batch).code == 0, "one message, whatever its body looks like"
    assert broker.ask(310, {**one, "m": "true"}, batch).code == 0
    assert broker.ask(320, one, batch).code == 0
    found = messages(broker.pull("apart"))
    assert [message.body for message in found] == [batch, b"b0", b"b1", b"b0", b"b1"]
    back = {"offset": found[1].position, "group": "told-apart", "delayLevel": -1}
    back |= {"originMsgId": "x", "originTopic": "apart", "unitMode": "false"}
    assert broker.ask(36, {**back, "maxReconsumeTimes": 16}).code == 0
    dead = messages(broker.pull("%DLQ%told-apart", consumerGroup="told-apart"))
    assert [message.body for message in dead] == [b"b0"]


# Statuses


class SendWorld(RemotingWorld):
    """Sends over a store in memory."""

    def __init__(self, *, flush: Literal["async", "sync"] = "async") -> None:
        super().__init__(replace(CONFIG, flush=flush, flush_timeout_ms=1))
        self.sender = Sender(
            appender=self.store.appender,
            queues=self.store.queues,
            topics=self.book,
            durability=self.durability,
            body_bytes_max=1 << 16,
        )
        sends = Sends(
            sender=self.sender,
            clients=cast(Any, None),
            clock=self.store.clock,
            store_host=bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F)),
            address="127.0.0.1:10911",
            broker_name="b",
        )
        table: dict[RequestCode, Any] = {RequestCode.SEND_MESSAGE: sends.send}
        self._dispatcher = Dispatcher(table)

    async def send(self, body: bytes, **changes: Any) -> Command:
        texts = {name: str(value) for name, value in fields_of("orders", **changes).items()}
        client = Connection()
        opaque = client.request(10, texts, body)
        caller = cast(Any, FakeCaller(1))
        outcome = self._dispatcher.dispatch(Command(10, texts, body, opaque=opaque), caller)
        async with asyncio.timeout(20):
            frame = outcome if isinstance(outcome, list) else await cast(Awaitable[Any], outcome)
        [answer] = client.receive_data(b"".join(map(bytes, frame)))
        return answer

    def stored(self, answer: Command) -> bytes:
        """The body that lies where an answer says."""
        _, _, position = parse_offset_message_id(answer.fields["msgId"])
        view = self.store.log.segment_at(position)
        assert view is not None
        entry = read(view.mapping.view, position - view.start)
        assert entry.queue_id == int(answer.fields["queueId"])
        assert entry.queue_offset == int(answer.fields["queueOffset"])
        return bytes(view.mapping.view[entry.body_at : entry.body_at + entry.body_size])


@pytest.mark.row("SND-8")
async def test_a_stored_message_is_answered_with_where_it_lies() -> None:
    world = SendWorld()
    for body in (b"first", b"second"):
        answer = await world.send(body)
        assert answer.code == ResponseCode.SUCCESS
        assert world.stored(answer) == body


@pytest.mark.row("SND-8", "D-06", "D-19")
@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_flush_that_is_late_for_its_sender_is_a_disk_flush_timeout_and_stored(
    is_batch: bool,
) -> None:
    world = SendWorld(flush="sync")
    body = encode_batch([(0, b"in a batch", b"")]) if is_batch else b"late"
    # Nothing is flushed: the sender's own timeout decides.
    answer = await world.send(body, batch=str(is_batch).lower(), properties="")
    assert answer.code == ResponseCode.FLUSH_DISK_TIMEOUT
    assert world.stored(answer) == (b"in a batch" if is_batch else b"late")
    world.store.flush()
    await turns()


@pytest.mark.row("SND-8")
@pytest.mark.parametrize(
    ("body", "changes", "code"),
    [
        (b"", {}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x" * (1 << 17), {}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x", {"properties": "p\x01" + "x" * 32_768}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x", {"queueId": 99}, ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_what_no_store_would_take_is_illegal(
    body: bytes, changes: dict[str, Any], code: ResponseCode
) -> None:
    assert (await SendWorld().send(body, **changes)).code == code


@pytest.mark.row("SND-8")
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (lambda: errors.StoreFull("no room"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (lambda: errors.StoreClosed("stopping"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (lambda: errors.EntryTooLarge("body", 2, 1), ResponseCode.MESSAGE_ILLEGAL),
        (lambda: errors.StoreError("something"), ResponseCode.SYSTEM_ERROR),
        (lambda: ZeroDivisionError("a bug"), ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_each_refusal_of_the_store_has_its_code(
    failure: Callable[[], Exception], code: ResponseCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = SendWorld()

    def refuse(*what: object) -> None:
        raise failure()

    monkeypatch.setattr(world.store.appender, "placed", refuse)
    answer = await world.send(b"x")
    assert answer.code == code
    assert "msgId" not in answer.fields
