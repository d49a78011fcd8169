import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rockgate.gateway.kafka.request.errors import CODES, RequestError, code_of
from rockgate.gateway.kafka.request.handler import (
    LARGE_SIZE,
    Answer,
    AnyHandler,
    Call,
    Large,
    Peer,
    row,
)
from rockgate.gateway.kafka.server.dispatch import Dispatcher, PendingAnswer
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.storage.durability import Late
from rockgate.protocol.kafka import api
from rockgate.protocol.kafka.connection import ClientConnection, Exchange, ServerConnection
from rockgate.protocol.kafka.errors import ErrorCode, MalformedMessage, UnsupportedVersion
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.metadata import MetadataResponse, MetadataResponseTopic
from rockgate.protocol.kafka.schema import decode, encode, encode_part
from rockgate.store import errors as store

VERSION = 1
PEER = Peer(connection_id=1, local=Address("a", 1), remote=Address("b", 2))
Act = Callable[[InitProducerIdRequest], Any]


class Scripted:
    """A handler that does what a test says; an InitProducerId stands for any API."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.calls: list[Call] = []

    def handle(self, request: InitProducerIdRequest, call: Call) -> Any:
        self.calls.append(call)
        return self.act(request)

    def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=code, producer_id=-1)


def dispatcher(act: Act, **options: Any) -> Dispatcher:
    handler: AnyHandler = Scripted(act)
    return Dispatcher([row(api.INIT_PRODUCER_ID, lambda _: handler, **options)], None)


def exchange(
    body: bytes | None = None, *, key: ApiKey = ApiKey.INIT_PRODUCER_ID, version: int = VERSION
) -> Exchange:
    if body is None:
        body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION)
    client = ClientConnection(client_id="me")
    client.send(key, version, [body])
    (received,) = ServerConnection().receive_data(b"".join(client.data_to_send()))
    return received


def read(answer: object) -> InitProducerIdResponse:
    assert isinstance(answer, list)
    return decode(InitProducerIdResponse, VERSION, b"".join(answer))


def ok(request: InitProducerIdRequest) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=0, producer_id=request.transaction_timeout_ms)


def raising(error: Exception) -> Act:
    def act(request: InitProducerIdRequest) -> InitProducerIdResponse:
        raise error

    return act


def waiting_for(act: Act) -> Callable[[InitProducerIdRequest], Awaitable[Any]]:
    async def later(request: InitProducerIdRequest) -> Any:
        await asyncio.sleep(0)
        return act(request)

    return later


async def test_a_handler_that_knows_its_answer_is_a_plain_call() -> None:
    handler = Scripted(ok)
    table = Dispatcher([row(api.INIT_PRODUCER_ID, lambda _: handler)], None)
    assert read(table.dispatch(exchange(), PEER)).producer_id == 5
    (call,) = handler.calls
    assert (call.version, call.client_id, call.peer) == (VERSION, "me", PEER)


async def test_a_handler_that_must_wait_returns_an_awaitable() -> None:
    outcome = dispatcher(waiting_for(ok)).dispatch(exchange(), PEER)
    assert isinstance(outcome, PendingAnswer)
    await outcome.future
    assert read(outcome.answer()).producer_id == 5


async def test_a_future_of_the_handlers_own_is_used_as_it_is() -> None:
    future: asyncio.Future[InitProducerIdResponse] = asyncio.get_running_loop().create_future()
    outcome = dispatcher(lambda _: future).dispatch(exchange(), PEER)
    assert isinstance(outcome, PendingAnswer) and outcome.future is future
    future.cancel()


async def outcome_of(act: Act, *, waits: bool) -> InitProducerIdResponse:
    if not waits:
        return read(dispatcher(act).dispatch(exchange(), PEER))
    outcome = dispatcher(waiting_for(act)).dispatch(exchange(), PEER)
    assert isinstance(outcome, PendingAnswer)
    await asyncio.wait([outcome.future])
    return read(outcome.answer())


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestError(ErrorCode.INVALID_REQUEST, "no"), ErrorCode.INVALID_REQUEST),
        (store.UnknownTopic("t"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (store.OffsetOutOfRange(1, 2, 3), ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
async def test_what_cannot_be_served_gets_its_code_and_no_line(
    caplog: pytest.LogCaptureFixture, error: Exception, code: ErrorCode, waits: bool
) -> None:
    assert (await outcome_of(raising(error), waits=waits)).error_code == code
    assert caplog.records == []


@pytest.mark.parametrize("waits", [False, True])
async def test_a_bug_gets_a_traceback_and_the_unknown_error(
    caplog: pytest.LogCaptureFixture, waits: bool
) -> None:
    answer = await outcome_of(raising(ZeroDivisionError("oops")), waits=waits)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and record.exc_info is not None
    assert "connection=1 peer=b:2 api=INIT_PRODUCER_ID version=1 client_id=me" in record.message


async def test_a_response_that_cannot_be_written_is_a_bug_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await outcome_of(
        lambda _: InitProducerIdResponse(error_code=0, producer_id=2**80), waits=False
    )
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(caplog.records) == 1


async def test_a_refusal_that_fails_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Scripted):
        def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
            raise ZeroDivisionError

    handler = Broken(raising(ZeroDivisionError()))
    table = Dispatcher([row(api.INIT_PRODUCER_ID, lambda _: handler)], None)
    with pytest.raises(Disconnect):
        table.dispatch(exchange(), PEER)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("error", [Disconnect("bye"), UnsupportedVersion(1, 1)])
async def test_what_ends_a_connection_passes_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        dispatcher(raising(error)).dispatch(exchange(), PEER)
    outcome = dispatcher(waiting_for(raising(error))).dispatch(exchange(), PEER)
    assert isinstance(outcome, PendingAnswer)
    await asyncio.wait([outcome.future])
    with pytest.raises(type(error)):
        outcome.answer()


async def test_a_body_that_cannot_be_read_ends_the_connection() -> None:
    with pytest.raises(MalformedMessage):
        dispatcher(ok).dispatch(exchange(b"\x00"), PEER)


async def test_an_api_without_a_handler_ends_the_connection() -> None:
    with pytest.raises(UnsupportedVersion, match="API key 3 version 1"):
        dispatcher(ok).dispatch(exchange(key=ApiKey.METADATA), PEER)


async def test_a_version_that_is_not_served_ends_the_connection() -> None:
    with pytest.raises(UnsupportedVersion):
        dispatcher(ok, versions="2-4").dispatch(exchange(), PEER)


async def test_a_version_that_is_not_served_may_have_an_answer_instead() -> None:
    table = dispatcher(ok, versions="2-4", answer_unknown_version=lambda: [b"ask again"])
    assert table.dispatch(exchange(), PEER) == [b"ask again"]


# Large requests


def large(act: Act, **options: Any) -> PendingAnswer:
    """What becomes of a request that is large."""
    body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION) + bytes(LARGE_SIZE)
    outcome = dispatcher(act, **options).dispatch(exchange(body), PEER)
    assert isinstance(outcome, PendingAnswer)
    return outcome


async def test_a_large_request_is_read_and_answered_in_a_thread() -> None:
    threads = []

    def reading(body: memoryview, version: int) -> InitProducerIdRequest:
        threads.append(threading.current_thread())
        return decode(InitProducerIdRequest, version, body)

    def acting(request: InitProducerIdRequest) -> InitProducerIdResponse:
        threads.append(threading.current_thread())
        return ok(request)

    def writing(response: InitProducerIdResponse, version: int) -> Answer:
        threads.append(threading.current_thread())
        return [encode(response, version)]

    outcome = large(acting, decode=reading, encode=writing)
    await outcome.future
    assert read(outcome.answer()).producer_id == 5
    main = threading.main_thread()
    assert [thread is main for thread in threads] == [False, True, False]


async def test_the_refusal_of_a_large_request_is_made_in_a_thread_too() -> None:
    threads = []

    class Refusing(Scripted):
        def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
            threads.append(threading.current_thread())
            return super().refuse(request, code)

    handler = Refusing(raising(RequestError(ErrorCode.INVALID_REQUEST, "no")))
    table = Dispatcher([row(api.INIT_PRODUCER_ID, lambda _: handler)], None)
    body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION) + bytes(LARGE_SIZE)
    outcome = table.dispatch(exchange(body), PEER)
    assert isinstance(outcome, PendingAnswer)
    await outcome.future
    assert read(outcome.answer()).error_code == ErrorCode.INVALID_REQUEST
    assert threads and threading.main_thread() not in threads


async def test_what_comes_behind_a_large_request_waits_until_that_has_taken_effect() -> None:
    order: list[str] = []
    peer = Peer(
        connection_id=1,
        local=Address("a", 1),
        remote=Address("b", 2),
        resume=lambda: order.append("resumed"),
    )
    body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION) + bytes(LARGE_SIZE)

    def act(request: InitProducerIdRequest) -> InitProducerIdResponse:
        order.append("acted")
        return ok(request)

    outcome = dispatcher(act).dispatch(exchange(body), peer)
    assert isinstance(outcome, PendingAnswer)
    assert peer.reading_count == 1
    await outcome.future
    assert (peer.reading_count, order) == (0, ["acted", "resumed"])


async def test_a_large_request_that_is_cancelled_or_broken_holds_no_one_back() -> None:
    peer = Peer(connection_id=1, local=Address("a", 1), remote=Address("b", 2))
    body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION) + bytes(LARGE_SIZE)
    cancelled = dispatcher(ok).dispatch(exchange(body), peer)
    broken = dispatcher(ok).dispatch(exchange(b"\x00\x02\xff\xff" + bytes(LARGE_SIZE)), peer)
    assert isinstance(cancelled, PendingAnswer) and isinstance(broken, PendingAnswer)
    assert peer.reading_count == 2
    cancelled.future.cancel()
    await asyncio.wait([cancelled.future, broken.future])
    assert peer.reading_count == 0
    assert isinstance(broken.future.exception(), MalformedMessage)


async def test_a_decoder_may_leave_a_request_to_the_thread() -> None:
    def leave(body: memoryview, version: int) -> InitProducerIdRequest:
        raise Large

    def reading(body: memoryview, version: int) -> InitProducerIdRequest:
        return decode(InitProducerIdRequest, version, body)

    table = dispatcher(ok, decode=leave, decode_large=reading, is_bulk=False)
    outcome = table.dispatch(exchange(), PEER)
    assert isinstance(outcome, PendingAnswer)
    await outcome.future
    assert read(outcome.answer()).producer_id == 5


async def test_a_large_request_may_have_to_wait_as_any_other() -> None:
    outcome = large(waiting_for(ok))
    await outcome.future
    assert read(outcome.answer()).producer_id == 5


async def test_a_large_request_that_cannot_be_served_gets_its_code() -> None:
    outcome = large(raising(RequestError(ErrorCode.INVALID_REQUEST, "no")))
    await asyncio.wait([outcome.future])
    assert read(outcome.answer()).error_code == ErrorCode.INVALID_REQUEST


async def test_a_large_request_that_cannot_be_read_ends_the_connection() -> None:
    body = b"\x00\x02\xff\xff" + bytes(LARGE_SIZE)
    outcome = dispatcher(ok).dispatch(exchange(body), PEER)
    assert isinstance(outcome, PendingAnswer)
    await asyncio.wait([outcome.future])
    with pytest.raises(MalformedMessage):
        outcome.answer()


@pytest.mark.parametrize("is_bulk", [True, False])
async def test_a_request_beyond_the_size_of_its_api_is_refused_unread(is_bulk: bool) -> None:
    def never(body: memoryview, version: int) -> Any:
        raise AssertionError("it was read")

    table = dispatcher(
        ok,
        decode=never,
        is_bulk=is_bulk,
        size_max=LARGE_SIZE,
        too_large=ErrorCode.UNKNOWN_SERVER_ERROR,
    )
    answer = read(table.dispatch(exchange(bytes(LARGE_SIZE + 100)), PEER))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_small_request_is_a_plain_call() -> None:
    assert read(dispatcher(ok).dispatch(exchange(), PEER)).producer_id == 5
    body = encode(InitProducerIdRequest(transaction_timeout_ms=5), VERSION) + bytes(LARGE_SIZE)
    assert read(dispatcher(ok, is_bulk=False).dispatch(exchange(body), PEER)).producer_id == 5


async def test_a_bulk_answer_may_be_many_buffers() -> None:
    def wide(request: InitProducerIdRequest) -> MetadataResponse:
        topics = [MetadataResponseTopic(name="x" * 30_000) for _ in range(2)]
        parts = [encode_part(MetadataResponse, topic, VERSION) for topic in topics]
        return MetadataResponse(topics=[*parts])

    answer = dispatcher(wide).dispatch(exchange(), PEER)
    assert isinstance(answer, list)
    assert len(answer) == 3


def test_a_row_serves_what_is_declared_unless_told_otherwise() -> None:
    def make(_: None) -> AnyHandler:
        return Scripted(ok)

    assert str(row(api.METADATA, make).versions) == str(row(api.METADATA, make).advertised)
    produce = row(api.PRODUCE, make)
    assert produce.versions.min == 3 and produce.advertised.min == 0
    less = row(api.PRODUCE, make, versions="3-9")
    assert (str(less.versions), str(less.advertised)) == ("3-9", "0-9")
    later = row(api.PRODUCE, make, versions="7-9")
    assert (str(later.versions), str(later.advertised)) == ("7-9", "7-9")
    with pytest.raises(AssertionError):
        row(api.METADATA, make, versions="0-99")


def test_a_table_out_of_order_or_with_a_key_twice_is_a_bug() -> None:
    def make(_: None) -> AnyHandler:
        return Scripted(ok)

    rows = [row(api.METADATA, make), row(api.PRODUCE, make)]
    with pytest.raises(AssertionError):
        Dispatcher(rows, None)
    with pytest.raises(AssertionError):
        Dispatcher([rows[0], rows[0]], None)


def _kinds(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(_kinds(each) for each in kind.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(_kinds(store.StoreError), key=repr))
def test_every_kind_of_store_error_has_a_code(kind: type[Exception]) -> None:
    # An error of the gateway is reported as the store error that it derives from.
    assert kind in CODES or (
        kind.__module__.startswith("rockgate.gateway") and kind.__base__ in CODES
    )


def test_a_flush_that_is_late_has_the_store_s_code() -> None:
    assert code_of(Late(5, "answer")) is CODES[store.FlushTimeout]


def test_a_bug_has_no_code() -> None:
    assert code_of(ValueError()) is None


class Short(Scripted):
    """A handler with a shortcut that knows one body only."""

    def shortcut(self, body: memoryview, version: int, peer: Peer) -> Answer | None:
        timeout_ms = decode(InitProducerIdRequest, version, body).transaction_timeout_ms
        if timeout_ms == 0:
            raise ZeroDivisionError("oops")
        response = InitProducerIdResponse(error_code=0, producer_id=-timeout_ms)
        return [encode(response, version)] if timeout_ms == 1 else None


def asking(timeout_ms: int) -> Exchange:
    return exchange(encode(InitProducerIdRequest(transaction_timeout_ms=timeout_ms), VERSION))


async def test_a_shortcut_answers_without_the_handler_or_leaves_the_request_to_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = Short(ok)
    table = Dispatcher(
        [row(api.INIT_PRODUCER_ID, lambda _: handler, shortcut=lambda made: made.shortcut)],
        None,
    )
    assert read(table.dispatch(asking(1), PEER)).producer_id == -1
    assert handler.calls == []
    assert read(table.dispatch(asking(2), PEER)).producer_id == 2
    assert len(handler.calls) == 1
    assert caplog.records == []
    failed = read(table.dispatch(asking(0), PEER))
    assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(handler.calls) == 1, "what a shortcut began is not tried again"
    assert len(caplog.records) == 1
