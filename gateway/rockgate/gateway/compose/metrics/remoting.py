"""Metrics of the RocketMQ listeners: requests, connections, half messages, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rockgate.gateway.remoting.admin.dead_letters import DeadLetterAdmin
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.messages.check_back import CheckBacks
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.retry import Retries
from rockgate.gateway.remoting.server.admission import HeldSend
from rockgate.gateway.remoting.server.dispatch import UNKNOWN
from rockgate.gateway.remoting.server.listener import RemotingConnections
from rockgate.gateway.remoting.server.overload import Overload
from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.remoting.codes import ResponseCode, request_name, response_name

NO_ERRORS: Final = frozenset(
    (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)
)
"""Not errors: a consumer at the end of its queue gets these all the time."""


class RequestSource:
    """Metrics of the requests and connections of one listener."""

    def __init__(self, name: str, stats: RequestStats, connections: RemotingConnections) -> None:
        self._name = name
        self._stats = stats
        self._connections = connections

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect; codes that were never requested have no series."""
        name = self._name
        for code, stats in sorted(self._stats.apis.items()):
            if not stats.count:
                continue
            request = "unknown" if code == UNKNOWN else request_name(code)
            page.add_durations(metrics.REMOTING_REQUESTS, stats, name, request)
            page.add(metrics.REMOTING_REQUEST_BYTES, stats.request_bytes, name, request)
            page.add(metrics.REMOTING_ANSWER_BYTES, stats.answer_bytes, name, request)
            for error, count in sorted(stats.errors.items()):
                if error not in NO_ERRORS:
                    error_name = response_name(error)
                    page.add(metrics.REMOTING_ERRORS, count, name, request, error_name)
            yield
        page.add(metrics.REMOTING_CONNECTIONS, self._connections.session_count, name)
        page.add(metrics.REMOTING_CONNECTIONS_MADE, self._connections.made_count, name)
        page.add(metrics.REMOTING_HELD, self._connections.held_bytes, name)


class HookSource:
    """Metrics of hooks."""

    def __init__(self, failed_counts: Mapping[str, int]) -> None:
        self._failed_counts = failed_counts

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect."""
        for name, count in self._failed_counts.items():
            page.add(metrics.REMOTING_HOOK_FAILURES, count, name)
        yield


class BrokerSource:
    """Metrics of the broker's background work."""

    def __init__(
        self,
        *,
        clients: Clients,
        puller: Puller,
        transcoder: Transcoder,
        halves: Halves,
        check_backs: CheckBacks,
        retries: Retries,
        dead_letters: DeadLetterAdmin,
    ) -> None:
        self._clients = clients
        self._puller = puller
        self._transcoder = transcoder
        self._halves = halves
        self._check_backs = check_backs
        self._retries = retries
        self._dead_letters = dead_letters

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        page.add(metrics.REMOTING_GROUPS, len(self._clients.producer_groups()), "producer")
        page.add(metrics.REMOTING_GROUPS, self._clients.group_count, "consumer")
        page.add(metrics.PULL_HITS, self._puller.hit_count)
        page.add(metrics.PULL_MISSES, self._puller.miss_count)
        page.add(metrics.PULL_LONGEST, self._puller.longest_seconds)
        cache = self._transcoder.cache
        page.add(metrics.MAPPED_BYTES, cache.size)
        page.add(metrics.MAPPED_HITS, cache.hit_count)
        page.add(metrics.MAPPED_MISSES, cache.miss_count)
        page.add(metrics.HALVES, len(self._halves.undecided))
        for outcome, count in self._halves.ended_counts.items():
            page.add(metrics.HALVES_ENDED, count, outcome.name.lower())
        page.add(metrics.HALF_CHECKS, self._check_backs.check_count)
        page.add(metrics.RETRIES, self._retries.retry_count)
        for reason, count in self._retries.dead_counts.items():
            page.add(metrics.DEAD_LETTERS, count, reason.value)
        page.add(metrics.DEAD_LETTERS_RESENT, self._dead_letters.resent_count)
        yield


class OverloadSource:
    """Metrics of overload protection."""

    def __init__(self, overload: Overload[HeldSend]) -> None:
        self._overload = overload

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Tell."""
        page.add(metrics.SENDS_WAITING, self._overload.waiting_count)
        for name, kind in self._overload.kinds.items():
            page.add(metrics.REMOTING_IN_FLIGHT, kind.in_flight, name)
            for reason, count in sorted(kind.refused.items()):
                page.add(metrics.REMOTING_REFUSED, count, name, reason)
        yield
