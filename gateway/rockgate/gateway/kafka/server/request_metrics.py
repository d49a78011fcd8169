"""Counts requests between session and dispatch: metrics for telemetry, rates for quotas.

Of an answer it counts the error that it tells of, and what a Fetch sends of each topic. The error
is its own code, or the first one among what it says of single things: topics, partitions, groups.
Looking for it is bounded, so that an answer of ten thousand costs no more than one of a hundred.

A client that is beyond a quota finds the time to wait in its answer, and its session is told to
read nothing for so long. While no quota is set nothing of that is looked at.
"""

from __future__ import annotations

import asyncio
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.handler import Answer, Peer, Row
from rockgate.gateway.kafka.server.session import Dispatch, Promise
from rockgate.gateway.telemetry.durations import BOUNDS
from rockgate.gateway.telemetry.requests import ApiStats, RequestStats
from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.connection import Exchange
from rockgate.protocol.kafka.schema import Encoded, declaration_of
from rockgate.protocol.kafka.schema.kinds import ArrayOf, Fixed, OrNull, Struct
from rockgate.store.api.topics import Topic

Services = TypeVar("Services")
_INT32 = struct.Struct(">i")
_THROTTLE_TIME = "throttle_time_ms"
_HOT = (ApiKey.PRODUCE, ApiKey.FETCH)
LOOKED_AT_MAX: Final = 64


class Counted:
    """An answer that is not there yet, and who counts it when it is."""

    __slots__ = (
        "_accounting",
        "_exchange",
        "_loop_seconds",
        "_peer",
        "_promise",
        "_started",
        "future",
    )

    def __init__(
        self,
        promise: Promise,
        accounting: Accounting,
        exchange: Exchange,
        peer: Peer,
        started: float,
        loop_seconds: float,
    ) -> None:
        self.future: asyncio.Future[Any] = promise.future
        self._promise = promise
        self._accounting = accounting
        self._exchange = exchange
        self._peer = peer
        self._started = started
        self._loop_seconds = loop_seconds

    def answer(self) -> Answer:
        """The answer, once `future` is done; raises what closes the connection."""
        now = self._accounting.now
        began = now()
        answer = self._promise.answer()
        ended = now()
        return self._accounting.count(
            self._exchange,
            self._peer,
            answer,
            ended - self._started,
            self._loop_seconds + ended - began,
        )


class Accounting:
    """Dispatch that counts. One for all connections of the listener."""

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        stats: RequestStats,
        throttling: Throttling,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self._dispatch = dispatch.dispatch
        self._apis: dict[int, ApiStats] = stats.apis
        self._new_api = stats.of
        self._throttling = throttling
        self.now = now

    def dispatch(self, exchange: Exchange, peer: Peer) -> Answer | Counted:
        """Answer a request, now or later; raises what closes the connection."""
        now = self.now
        started = now()
        outcome = self._dispatch(exchange, peer)
        seconds = now() - started
        if type(outcome) is not list:
            return Counted(cast(Promise, outcome), self, exchange, peer, started, seconds)
        # Every request comes by here, so this says once more what `count` says.
        api_key = exchange.header.api_key
        stats = self._apis.get(api_key) or self._new_api(api_key)
        stats.counts[bisect_left(BOUNDS, seconds)] += 1
        stats.seconds += seconds
        stats.request_bytes += exchange.size
        stats.answer_bytes += len(outcome[0]) if len(outcome) == 1 else sum(map(len, outcome))
        if self._throttling.is_on:
            return self._charge(exchange, peer, outcome, seconds)
        return outcome

    def count(
        self, exchange: Exchange, peer: Peer, answer: Answer, seconds: float, loop_seconds: float
    ) -> Answer:
        """Count an answer that came later; the same, or one that tells to wait."""
        stats = self._new_api(exchange.header.api_key)
        stats.add(seconds)
        stats.request_bytes += exchange.size
        stats.answer_bytes += sum(map(len, answer))
        if self._throttling.is_on:
            return self._charge(exchange, peer, answer, loop_seconds)
        return answer

    def _charge(
        self, exchange: Exchange, peer: Peer, answer: Answer, loop_seconds: float
    ) -> Answer:
        header = exchange.header
        wait_ms = self._throttling.charge(
            header.api_key,
            header.client_id,
            peer,
            request_size=exchange.size,
            answer_size=sum(map(len, answer)),
            loop_seconds=loop_seconds,
        )
        wait_ms = peer.throttle_ms = max(wait_ms, peer.throttle_ms)
        if not (wait_ms and answer):
            return answer
        return told(answer, header.api_key, header.api_version, wait_ms)


def counting(
    rows: Sequence[Row[Services]], stats: RequestStats, traffic: Traffic
) -> tuple[Row[Services], ...]:
    """The table of handlers, with every response looked at as it is written."""

    def looking(api_key: int) -> Callable[[Any], None]:
        find = first_partition_error if api_key in _HOT else first_error
        is_fetch = api_key == ApiKey.FETCH

        def look(response: Any) -> None:
            code = find(response)
            if code:
                stats.of(api_key).count_error(code)
            if is_fetch:
                traffic.count(response.topics)

        return look

    return tuple(replace(row, look=looking(int(row.key))) for row in rows)


class Traffic:
    """Bytes of records by topic; a version of Fetch has its name or its id."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_id: dict[bytes, int] = {}

    def count(self, topics: Iterable[Any]) -> None:
        """Count the records of an answer."""
        for name, topic_id, partitions in topics:
            size = 0
            for partition in partitions:
                for records in partition.records or ():
                    size += len(records)
            if not size:
                continue
            if name:
                self._by_name[name] = self._by_name.get(name, 0) + size
            else:
                self._by_id[topic_id] = self._by_id.get(topic_id, 0) + size

    def fetched(self, topic: Topic) -> int:
        """What was sent of a topic since the start."""
        name = names.to_kafka(topic.name)
        return self._by_name.get(name, 0) + self._by_id.get(topic.id, 0)

    def forget(self, topic: Topic) -> None:
        """Forget a topic that is gone."""
        self._by_name.pop(names.to_kafka(topic.name), None)
        self._by_id.pop(topic.id, None)


def first_partition_error(response: Any) -> int:
    """The error of an answer to Produce or Fetch, which have no declaration and come often."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                return int(partition.error_code)
    return int(getattr(response, "error_code", 0))


def first_error(response: Any) -> int:
    """The error code of a response, or the first one in it; 0 if it tells of none."""
    kind = type(response)
    lists = _LISTS.get(kind)
    if lists is None:
        lists = _LISTS[kind] = _lists_of(kind)
    own, lists_named = lists
    if own and response.error_code:
        return int(response.error_code)
    for name in lists_named:
        for item in (getattr(response, name) or ())[:LOOKED_AT_MAX]:
            if type(item) is Encoded:
                continue
            code = first_error(item)
            if code:
                return code
    return 0


_LISTS: dict[type, tuple[bool, tuple[str, ...]]] = {}


def _lists_of(kind: type) -> tuple[bool, tuple[str, ...]]:
    """Whether a message or a part of one has an error, and which of its lists may have some."""
    fields = declaration_of(kind).fields
    own = any(spec.name == "error_code" for spec in fields)
    return own, tuple(spec.name for spec in fields if _may_fail(spec.kind))


def _may_fail(kind: Any) -> bool:
    """Whether a field holds a list of things that have an error, or hold such lists."""
    if isinstance(kind, OrNull):
        kind = kind.kind
    if not isinstance(kind, ArrayOf) or not isinstance(kind.element, Struct):
        return False
    own, lists = _lists_of(kind.element.type)
    return own or bool(lists)


def told(answer: Answer, api_key: int, version: int, wait_ms: int) -> Answer:
    """The answer with the time to wait in it, if its version has a place for that."""
    if api_key == ApiKey.PRODUCE:
        # At the end: before the byte of a flexible version that says that no tags follow.
        tail = len(answer[-1]) - (5 if version in APIS[ApiKey.PRODUCE].flexible else 4)
        return [*answer[:-1], _put(answer[-1], tail, wait_ms)]
    at = _place(api_key, version)
    return answer if at is None else [_put(answer[0], at, wait_ms), *answer[1:]]


@cache
def _place(api_key: int, version: int) -> int | None:
    """Where a response has the time to wait: nearly all of them begin with it."""
    at = 0
    for spec in declaration_of(APIS[ApiKey(api_key)].response).fields:
        if version not in spec.versions or spec.tag is not None:
            continue
        if spec.name == _THROTTLE_TIME:
            return at
        if not isinstance(spec.kind, Fixed):
            return None
        at += spec.kind.size
    return None


def _put(buffer: bytes | bytearray | memoryview, at: int, number: int) -> bytes:
    return b"".join((buffer[:at], _INT32.pack(number), buffer[at + 4 :]))
