"""Hooks around sends and consumption: what they see, and that they cannot harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from tests.gateway.remoting.world import FakeCaller, send_header

from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.remoting.hooks.around import Hooks
from rockgate.gateway.remoting.hooks.contexts import ConsumeContext, SendContext
from rockgate.gateway.remoting.server.dispatch import Dispatcher, Frame, Handle
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command, decode, encode
from rockgate.protocol.remoting.headers.pop import PopHeader
from rockgate.protocol.remoting.headers.pull import PullHeader
from rockgate.protocol.remoting.headers.send import SendBackHeader, SentHeader

SENT = headers.write(
    SentHeader(msg_id="A1", queue_id=2, queue_offset=7, msg_region="r", trace_on="true")
)
PULL = PullHeader(
    consumer_group="g", topic="orders", queue_id=1, queue_offset=40, max_msg_nums=32, sys_flag=0
)
POP = PopHeader(
    consumer_group="g",
    topic="orders",
    queue_id=-1,
    max_msg_nums=16,
    invisible_time=60_000,
    poll_time=0,
    born_time=0,
    init_mode=0,
)
BACK = SendBackHeader(offset=900, group="g", delay_level=0, origin_topic="orders")


class Recorder:
    """A hook that records each call, and the outcome at that time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, int]] = []

    def before_send(self, context: SendContext) -> None:
        self.calls.append(("before send", context, context.outcome.code))

    def after_send(self, context: SendContext) -> None:
        self.calls.append(("after send", context, context.outcome.code))

    def before_consume(self, context: ConsumeContext) -> None:
        self.calls.append(("before consume", context, context.outcome.code))

    def after_consume(self, context: ConsumeContext) -> None:
        self.calls.append(("after consume", context, context.outcome.code))


class Failing:
    """A hook with a bug."""

    def before_send(self, context: SendContext) -> None:
        raise ZeroDivisionError

    def after_consume(self, context: ConsumeContext) -> None:
        raise ZeroDivisionError


def table(handle: Handle) -> dict[RequestCode, Handle]:
    codes = (
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.HEART_BEAT,
    )
    return dict.fromkeys(codes, handle)


async def answered(hooks: Hooks, handle: Any, command: Command) -> Command | None:
    """What the client gets."""
    dispatcher = Dispatcher(hooks.around(table(handle)))
    outcome = dispatcher.dispatch(command, cast(Any, FakeCaller(1)))
    frame = outcome if isinstance(outcome, list) else await cast(Awaitable[Any], outcome)
    if not frame:
        return None
    return decode(memoryview(b"".join(map(bytes, frame)))[4:])


def send(code: int = RequestCode.SEND_MESSAGE_V2, **more: Any) -> Command:
    header = send_header(properties="TAGS\x01a\x02", **more)
    return Command(code, headers.write(header), b"body", opaque=1)


def written(command: Command, caller: object) -> Frame:
    """An answer whose frame is made by hand, as that of a send is."""
    answer = Command(ResponseCode.SUCCESS, SENT, opaque=command.opaque, flag=1)
    return [encode(answer)]


async def finished(command: Command, caller: object) -> Any:
    await asyncio.sleep(0)
    return Command(ResponseCode.SUCCESS, SENT)


@pytest.mark.row("OBS-4")
@pytest.mark.row("SND-1")
@pytest.mark.parametrize("handle", [written, finished], ids=["at once", "later"])
@pytest.mark.parametrize("is_batch", [False, True])
async def test_hooks_see_a_send_before_and_after_it_is_stored(
    handle: Callable[..., Any], is_batch: bool
) -> None:
    hook = Recorder()
    code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
    answer = await answered(Hooks([("one", hook)]), handle, send(code))
    assert answer is not None and answer.code == 0
    [(before, context, unknown), (after, same, known)] = hook.calls
    assert (before, after) == ("before send", "after send")
    assert (unknown, known) == (-1, 0) and context is same
    assert (context.topic, context.producer_group, context.client) == (
        "orders",
        "payers",
        "127.0.0.1:50001",
    )
    assert (context.body_bytes, context.properties) == (4, "TAGS\x01a\x02")
    assert (context.is_batch, context.is_oneway) == (is_batch, False)
    assert (context.message_id, context.queue_offset) == ("A1", 7)
    assert context.outcome.seconds >= 0


@pytest.mark.parametrize("is_long", [False, True])
async def test_hooks_see_a_reply_as_a_send(is_long: bool) -> None:
    hook, command = Recorder(), send(RequestCode.SEND_REPLY_MESSAGE_V2)
    if is_long:
        fields = {"topic": "orders", "producerGroup": "payers", "properties": "TAGS\x01a\x02"}
        numbers = {"queueId": "2", "sysFlag": "0", "bornTimestamp": "0", "flag": "0"}
        more = {"defaultTopic": "TBW102", "defaultTopicQueueNums": "4"}
        command = Command(RequestCode.SEND_REPLY_MESSAGE, {**fields, **numbers, **more}, b"body")
    answer = await answered(Hooks([("one", hook)]), finished, command)
    assert answer is not None and answer.code == 0
    [(before, context, _), (after, _, known)] = hook.calls
    assert (before, after, known) == ("before send", "after send", 0)
    assert (context.topic, context.producer_group, context.body_bytes) == ("orders", "payers", 4)


@pytest.mark.row("SND-1")
@pytest.mark.parametrize(
    ("code", "header", "seen"),
    [
        (RequestCode.PULL_MESSAGE, PULL, ("pull", 1, 40, 32)),
        (RequestCode.LITE_PULL_MESSAGE, PULL, ("pull", 1, 40, 32)),
        (RequestCode.POP_MESSAGE, POP, ("pop", -1, -1, 16)),
        (RequestCode.CONSUMER_SEND_MSG_BACK, BACK, ("send back", -1, 900, 0)),
    ],
    ids=["pull", "lite pull", "pop", "send back"],
)
async def test_hooks_see_consumption_and_send_backs(
    code: RequestCode, header: Any, seen: tuple[str, int, int, int]
) -> None:
    hook = Recorder()
    await answered(Hooks([("one", hook)]), written, Command(code, headers.write(header)))
    [(before, context, _), (after, _, known)] = hook.calls
    assert (before, after, known) == ("before consume", "after consume", 0)
    assert (context.kind, context.queue_id, context.offset, context.count_max) == seen
    assert (context.consumer_group, context.topic) == ("g", "orders")
    assert context.answer_bytes > 0


@pytest.mark.parametrize("is_late", [False, True])
async def test_hooks_see_why_a_send_was_refused(is_late: bool) -> None:
    refused = Refused(ResponseCode.NO_PERMISSION, "Topic is read-only.")

    def at_once(command: Command, caller: object) -> Command:
        raise refused

    async def later(command: Command, caller: object) -> Command:
        raise refused

    hook = Recorder()
    answer = await answered(Hooks([("one", hook)]), later if is_late else at_once, send())
    assert answer is not None and answer.code == ResponseCode.NO_PERMISSION
    outcome = hook.calls[-1][1].outcome
    assert (outcome.code, outcome.remark) == (ResponseCode.NO_PERMISSION, "Topic is read-only.")


async def test_a_request_that_cannot_be_read_is_seen_by_no_hook() -> None:
    hook = Recorder()
    command = Command(RequestCode.SEND_MESSAGE_V2, {"b": "orders"}, b"body")
    answer = await answered(Hooks([("one", hook)]), written, command)
    assert answer is not None and answer.code == ResponseCode.INVALID_PARAMETER
    assert hook.calls == []


async def test_a_hook_that_raises_harms_neither_the_request_nor_other_hooks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook = Recorder()
    hooks = Hooks([("bad", Failing()), ("good", hook)])
    for _ in range(3):
        answer = await answered(hooks, written, send())
        assert answer is not None and answer.code == 0
    assert [name for name, _, _ in hook.calls] == ["before send", "after send"] * 3
    assert hooks.failed_counts == {"bad": 3, "good": 0}
    assert caplog.text.count("hook failed hook=bad") == 1, "not a line for each request"


async def test_what_only_closing_can_answer_closes() -> None:
    def broken(command: Command, caller: object) -> Command:
        raise Disconnect("broken")

    with pytest.raises(Disconnect):
        await answered(Hooks([("one", Recorder())]), broken, send())


async def test_a_one_way_send_is_seen_and_not_answered() -> None:
    hook, command = Recorder(), send()
    command.flag = ONEWAY_FLAG
    assert await answered(Hooks([("one", hook)]), written, command) is None
    assert hook.calls[0][1].is_oneway


def test_other_requests_and_servers_without_hooks_pay_nothing() -> None:
    processors = table(written)
    assert Hooks([]).around(processors) == processors
    hooked = Hooks([("one", Recorder())]).around(processors)
    assert hooked[RequestCode.HEART_BEAT] is written
