"""From a request to its response: find the handler, decode the body, call it, encode the response.

Three fates of a request that fails are decided here, by type, and nowhere else:

- the peer broke the protocol (ProtocolError, Disconnect): raised, and the session closes;
- the request cannot be served (RequestError, StoreError, …): its code goes into the response;
- anything else is our bug: logged with its traceback, UNKNOWN_SERVER_ERROR, the connection lives.

`accounting` precedes it and counts requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from rockgate.gateway.kafka.request.errors import RequestError, code_of
from rockgate.gateway.kafka.request.handler import (
    LARGE_SIZE,
    Answer,
    AnyHandler,
    AnyRow,
    Call,
    Large,
    Peer,
    Row,
    Shortcut,
)
from rockgate.gateway.kafka.request.worker_threads import Beside
from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.runtime.release import release
from rockgate.protocol.kafka.connection import Exchange
from rockgate.protocol.kafka.errors import ErrorCode, ProtocolError, UnsupportedVersion
from rockgate.protocol.kafka.keys import ApiKey

log = logging.getLogger(__name__)
Services = TypeVar("Services")

_Served = tuple[int, int, AnyRow, AnyHandler, Shortcut | None]
"""First and last version that are served, and by what."""


class PendingAnswer:
    """A pending response: once `future` is done, `answer` returns it."""

    __slots__ = ("_call", "_dispatcher", "_handler", "_request", "_row", "future")

    def __init__(
        self,
        future: asyncio.Future[Any],
        dispatcher: Dispatcher,
        row: AnyRow,
        handler: AnyHandler,
        request: Any,
        call: Call,
    ) -> None:
        self.future = future
        self._dispatcher = dispatcher
        self._row = row
        self._handler = handler
        self._request = request
        self._call = call

    def answer(self) -> Answer:
        """The response, once `future` is done; raises what closes the connection."""
        row, handler, request, call = self._row, self._handler, self._request, self._call
        try:
            return _written(row, self.future.result(), call.version)
        except (ProtocolError, Disconnect):
            raise
        except Exception as error:  # noqa: BLE001 # decided by type in failed()
            return self._dispatcher.failed(row, handler, request, call, error)


class LargeRequest(PendingAnswer):
    """The response to a large request, which is decoded and encoded in a thread.

    Its effects happen on the loop, as always. Later requests of its connection are not started
    before that.
    """

    __slots__ = ("_is_ahead",)

    def __init__(
        self,
        dispatcher: Dispatcher,
        row: AnyRow,
        handler: AnyHandler,
        call: Call,
        body: memoryview,
    ) -> None:
        self._is_ahead = True
        call.peer.reading_count += 1
        super().__init__(
            asyncio.ensure_future(self._handle(row, handler, call, body)),
            dispatcher,
            row,
            handler,
            None,
            call,
        )
        # Even if it is cancelled before it has started.
        self.future.add_done_callback(lambda _: self._start_next())

    def answer(self) -> Answer:
        """The response, once `future` is done; raises what closes the connection."""
        answer: Answer = self.future.result()
        return answer

    async def _handle(
        self, row: AnyRow, handler: AnyHandler, call: Call, body: memoryview
    ) -> Answer:
        do, version = self._dispatcher.beside.do, call.version
        try:
            self._request = await do(row.decode_large or row.decode, body, version)
            response = handler.handle(self._request, call)
            self._start_next()
            if hasattr(response, "__await__"):
                response = await response
        except (ProtocolError, Disconnect):
            raise
        except Exception as error:  # noqa: BLE001 # decided by type in refusal()
            refusal = self._dispatcher.refusal
            response = await do(refusal, row, handler, self._request, call, error)
        if row.look is not None:
            row.look(response)
        given = [self._request, response]
        self._request = response = None
        return await do(_written_last, row, given, version)

    def _start_next(self) -> None:
        """Let later requests start; only the first call has an effect."""
        if self._is_ahead:
            self._is_ahead = False
            self._call.peer.reading_count -= 1
            self._call.peer.resume()


class Dispatcher:
    """The handlers of this server. One for all connections."""

    def __init__(self, rows: Sequence[Row[Services]], services: Services) -> None:
        keys = [row.key for row in rows]
        assert keys == sorted(set(keys)), "the table is in key order, each key once"
        self.beside = Beside()
        # With the versions as plain numbers: every request compares them.
        self._handlers: dict[int, _Served] = {}
        for row in rows:
            handler = row.make(services)
            shortcut = None if row.shortcut is None else row.shortcut(handler)
            versions = row.versions
            self._handlers[int(row.key)] = (versions.min, versions.max, row, handler, shortcut)
        self._made = dict(self._handlers)

    def handler_of(self, key: ApiKey) -> AnyHandler:
        """The handler that was made for an API."""
        return self._made[key][3]

    def replace(self, key: ApiKey, handler: AnyHandler) -> None:
        """Have another handler answer an API, until `restore`."""
        low, high, row, _, _ = self._made[key]
        self._handlers[key] = (low, high, row, handler, None)

    def restore(self, key: ApiKey) -> None:
        """Have an API answered by its own handler again."""
        self._handlers[key] = self._made[key]

    def dispatch(self, exchange: Exchange, peer: Peer) -> Answer | PendingAnswer:
        """Call the handler; raises ProtocolError or Disconnect if the connection must be closed."""
        header = exchange.header
        version = header.api_version
        found = self._handlers.get(header.api_key)
        if found is None:
            raise UnsupportedVersion(header.api_key, version)
        low, high, row, handler, shortcut = found
        if not low <= version <= high:
            if row.answer_unknown_version is None:
                raise UnsupportedVersion(header.api_key, version)
            return row.answer_unknown_version()
        call = Call(version, header.client_id, peer)
        if shortcut is not None:
            try:
                answer = shortcut(exchange.body, version, peer)
            except Exception as error:  # noqa: BLE001 # a bug: there is nothing that it may raise
                request = row.decode(exchange.body, version)
                return self.failed(row, handler, request, call, error)
            if answer is not None:
                return answer
        if len(exchange.body) >= LARGE_SIZE:
            if row.size_max is not None and len(exchange.body) > row.size_max:
                refused = RequestError(row.too_large, f"Request exceeds {row.size_max:,} bytes.")
                return self.failed(row, handler, None, call, refused)
            if row.is_bulk:
                return LargeRequest(self, row, handler, call, exchange.body)
        request = None
        try:
            request = row.decode(exchange.body, version)
            response = handler.handle(request, call)
            if not hasattr(response, "__await__"):
                return _written(row, response, version)
        except Large:
            return LargeRequest(self, row, handler, call, exchange.body)
        except (ProtocolError, Disconnect):
            raise
        except Exception as error:  # noqa: BLE001 # decided by type in failed()
            return self.failed(row, handler, request, call, error)
        future = asyncio.ensure_future(response)
        return PendingAnswer(future, self, row, handler, request, call)

    def failed(
        self,
        row: AnyRow,
        handler: AnyHandler,
        request: Any,
        call: Call,
        error: Exception,
    ) -> Answer:
        """The response to a request that raised `error`; Disconnect if it cannot be built."""
        response = self.refusal(row, handler, request, call, error)
        try:
            return _written(row, response, call.version)
        except (ProtocolError, Disconnect):
            raise
        except Exception as worse:
            log.exception("error response failed %s api=%s", call.peer, row.key.name)
            raise Disconnect(f"cannot encode a response to {row.key.name}") from worse

    @staticmethod
    def refusal(
        row: AnyRow,
        handler: AnyHandler,
        request: Any,
        call: Call,
        error: Exception,
    ) -> Any:
        """The response to a request that raised `error`, not yet encoded."""
        code = code_of(error)
        if code is None:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            log.error(
                "request failed %s api=%s version=%d client_id=%s",
                call.peer,
                row.key.name,
                call.version,
                quoted(call.client_id),
                exc_info=error,
            )
        try:
            return handler.refuse(request, code)
        except (ProtocolError, Disconnect):
            raise
        except Exception as worse:
            log.exception("error response failed %s api=%s", call.peer, row.key.name)
            raise Disconnect(f"cannot encode a response to {row.key.name}") from worse


def _written_last(row: AnyRow, given: list[Any], version: int) -> Answer:
    """Encode the last of what is given, and release all of it."""
    try:
        return row.encode(given[-1], version)
    finally:
        release(given)


def _written(row: AnyRow, response: Any, version: int) -> Answer:
    if row.look is not None:
        row.look(response)
    return row.encode(response, version)
