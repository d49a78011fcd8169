"""Dispatch of RocketMQ's listener: who is answered, and who never is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from tests.gateway.remoting.world import FakeCaller
from tests.world import World

from rockgate.gateway.remoting.server.dispatch import Dispatcher, Frame
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

CODE = RequestCode.GET_BROKER_RUNTIME_INFO


def raising(error: Exception) -> Callable[..., Any]:
    def handle(command: Command, caller: object) -> Command:
        raise error

    return handle


def raising_later(error: Exception) -> Callable[..., Any]:
    async def wait() -> Command:
        raise error

    return lambda command, caller: wait()


async def later() -> Command:
    return Command(0)


HANDLES = [
    pytest.param(lambda command, caller: Command(0), ResponseCode.SUCCESS, id="command"),
    pytest.param(lambda command, caller: later(), ResponseCode.SUCCESS, id="later"),
    pytest.param(
        raising(Refused(ResponseCode.SYSTEM_BUSY, "busy")), ResponseCode.SYSTEM_BUSY, id="busy"
    ),
    pytest.param(
        raising_later(Refused(ResponseCode.SYSTEM_BUSY, "busy")),
        ResponseCode.SYSTEM_BUSY,
        id="busy later",
    ),
    pytest.param(raising(ZeroDivisionError()), ResponseCode.SYSTEM_ERROR, id="a bug"),
    pytest.param(raising_later(ZeroDivisionError()), ResponseCode.SYSTEM_ERROR, id="a bug later"),
    pytest.param(None, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, id="unsupported"),
]


def told(frame: Frame) -> tuple[int, str]:
    client = Connection()
    client.request(CODE)
    [answer] = client.receive_data(b"".join(map(bytes, frame)))
    return answer.code, answer.remark or ""


async def dispatched(handle: Callable[..., Any] | None, flag: int) -> Frame:
    dispatcher = Dispatcher({} if handle is None else {CODE: handle})
    outcome = dispatcher.dispatch(Command(CODE, flag=flag), cast(Any, FakeCaller(1)))
    return outcome if isinstance(outcome, list) else await cast(Awaitable[Frame], outcome)


@pytest.mark.row("D-10")
@pytest.mark.row("M-04")
@pytest.mark.parametrize(("handle", "code"), HANDLES)
async def test_a_one_way_request_is_never_answered_whatever_becomes_of_it(
    handle: Callable[..., Any] | None, code: ResponseCode
) -> None:
    assert await dispatched(handle, ONEWAY_FLAG) == []
    client = Connection()
    client.request(CODE)
    [answer] = client.receive_data(b"".join(map(bytes, await dispatched(handle, 0))))
    assert answer.code == code, "whoever waits is told"


@pytest.mark.row("M-04", "Q-05")
async def test_a_request_goes_to_the_processor_of_its_code_and_waits_for_no_other_kind() -> None:
    gate = asyncio.Event()

    async def slow() -> Command:
        await gate.wait()
        return Command(0, remark="slow")

    kinds: dict[RequestCode, Callable[..., Any]] = {
        RequestCode.PULL_MESSAGE: lambda command, caller: slow(),
        RequestCode.HEART_BEAT: lambda command, caller: Command(0, remark="beat"),
        CODE: lambda command, caller: Command(0, remark="info"),
    }
    dispatcher = Dispatcher(kinds)
    client, caller = Connection(), cast(Any, FakeCaller(1))

    def sent(code: RequestCode) -> Frame | asyncio.Future[Frame]:
        return dispatcher.dispatch(Command(code, opaque=client.request(code)), caller)

    def told(frame: Frame) -> str | None:
        [answer] = client.receive_data(b"".join(map(bytes, frame)))
        return answer.remark

    held = [sent(RequestCode.PULL_MESSAGE) for _ in range(100)]
    for code, remark in ((RequestCode.HEART_BEAT, "beat"), (CODE, "info")):
        frame = sent(code)
        assert isinstance(frame, list), "at once, whatever waits"
        assert told(frame) == remark
    gate.set()
    for each in held:
        assert told(await cast(Awaitable[Frame], each)) == "slow"


@pytest.mark.row("PUT-1")
async def test_a_put_after_the_store_was_closed_is_refused_as_unavailable_and_not_stored() -> None:
    world = World()
    world.topic()

    def put(command: Command, caller: object) -> Command:
        return Command(0, remark=str(world.message().offset))

    assert told(await dispatched(put, 0)) == (0, "0")
    world.store.close()
    code, text = told(await dispatched(put, 0))
    assert code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the server is stopping" in text
    assert await dispatched(put, ONEWAY_FLAG) == []
    world.open()
    assert world.queue().next_offset == 1
