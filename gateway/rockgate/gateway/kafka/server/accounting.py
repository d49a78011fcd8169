"""Counts requests: metrics for telemetry, rates for quotas, appends that took long.

A client over a quota gets the throttle time in its answer, and its session reads nothing for that
time. While no quota is set, none of this is evaluated.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol, cast

from rockgate.gateway.kafka.request.handler import Answer, Peer
from rockgate.gateway.kafka.server.session import Dispatch, Promise
from rockgate.gateway.kafka.server.throttle_pause import with_throttle_time
from rockgate.gateway.storage.slow_appends import SLOW_SECONDS, SlowAppends
from rockgate.gateway.telemetry.durations import BOUNDS
from rockgate.gateway.telemetry.requests import ApiStats, RequestStats
from rockgate.protocol.kafka.connection import Exchange
from rockgate.protocol.kafka.keys import ApiKey


class Counted:
    """An answer to come, which is counted when it is complete."""

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


class ChargesClients(Protocol):
    """Says how long clients have to wait."""

    @property
    def is_on(self) -> bool:
        """Whether any quota is set."""

    def charge(
        self,
        api_key: int,
        client_id: str | None,
        peer: Peer,
        *,
        request_size: int,
        answer_size: int,
        loop_seconds: float,
    ) -> int:
        """Count a request that is about to be answered; how long its client has to wait."""


class Accounting:
    """Dispatch that counts. One for all connections of the listener."""

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        stats: RequestStats,
        throttling: ChargesClients,
        slow_appends: SlowAppends,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self._dispatch = dispatch.dispatch
        self._apis: dict[int, ApiStats] = stats.apis
        self._new_api = stats.of
        self._throttling = throttling
        self._slow_appends = slow_appends
        self.now = now

    def dispatch(self, exchange: Exchange, peer: Peer) -> Answer | Counted:
        """Answer a request, now or later; raises what closes the connection."""
        now = self.now
        started = now()
        outcome = self._dispatch(exchange, peer)
        seconds = now() - started
        if type(outcome) is not list:
            return Counted(cast(Promise, outcome), self, exchange, peer, started, seconds)
        # Every request passes here, so `count` is inlined.
        api_key = exchange.header.api_key
        stats = self._apis.get(api_key) or self._new_api(api_key)
        stats.counts[bisect_left(BOUNDS, seconds)] += 1
        stats.seconds += seconds
        stats.request_bytes += exchange.size
        stats.answer_bytes += len(outcome[0]) if len(outcome) == 1 else sum(map(len, outcome))
        if seconds > SLOW_SECONDS and api_key == ApiKey.PRODUCE:
            self._slow_appends.note(seconds)
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
        if peer.throttle_ms and answer:
            header = exchange.header
            return with_throttle_time(answer, header.api_key, header.api_version, peer.throttle_ms)
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
        return with_throttle_time(answer, header.api_key, header.api_version, wait_ms)
