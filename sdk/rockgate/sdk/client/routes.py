"""Topic routes: queried from a name server, cached, and refreshed every 30 s.

A topic that is not known yet borrows the route of TBW102: a send to it creates the topic there,
with at most `QUEUE_COUNT_OF_NEW` queues. A borrowed route is refreshed after a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.bodies.nameserver import RouteData
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.nameserver import RouteHeader
from rockgate.sdk.client.cluster import MASTER, brokers_of
from rockgate.sdk.client.name_servers import Found, NameServers
from rockgate.sdk.errors import Closed, NoRoute, SdkError
from rockgate.sdk.results import Queue

DEFAULT_TOPIC: Final = "TBW102"
QUEUE_COUNT_OF_NEW: Final = 4
WRITABLE: Final = 2
READABLE: Final = 4
BORROWED_S_MAX: Final = 1.0
QUEUE_COUNT_MAX: Final = 65_536
"""More queues than any topic has, at all of its brokers; a route that claims more is refused."""
MISSING_MAX: Final = 2
"""A known topic is forgotten after it was missing this many times in a row: a name server that was
restarted knows no topic until the brokers have registered."""

_log: Final = logging.getLogger(__name__)


class UnknownTopic(NoRoute):
    """Name servers answered, and none of them knows the topic."""


class NotWritable(NoRoute):
    """The topic is known, and none of its queues may be written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """The queues of a topic, and where its brokers are."""

    queues: tuple[Queue, ...]
    """Those that may be written."""
    addresses: dict[str, str]
    """Where the masters of their brokers are."""
    readable: tuple[Queue, ...] = ()
    """Those that may be read."""
    brokers: dict[str, dict[int, str]] = field(default_factory=dict)
    """Where every broker of the topic is, by name and id; 0 is its master."""
    is_borrowed: bool = False


@dataclass(slots=True)
class _Known:
    """A route, when it was queried, and how often it was not found since."""

    route: Route
    asked_at: float
    missing_count: int = 0


class Routes:
    """The known routes, by topic."""

    def __init__(
        self, name_servers: NameServers, on_change: Callable[[str], None] = lambda _: None
    ) -> None:
        """`on_change` is notified of topics whose readable queues have changed."""
        self._name_servers = name_servers
        self._on_change = on_change
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[Route]] = {}

    @property
    def addresses(self) -> set[str]:
        """Every broker of every route that is known."""
        return {
            address
            for each in self._known.values()
            for addresses in each.route.brokers.values()
            for address in addresses.values()
        }

    def known(self, topic: str) -> Route | None:
        """The cached route of a topic that may be written, if there is one."""
        found = self._known.get(topic)
        if found is None or not found.route.queues:
            return None
        if found.route.is_borrowed:
            now = asyncio.get_running_loop().time()
            return found.route if now - found.asked_at < BORROWED_S_MAX else None
        return found.route

    async def get(self, topic: str) -> Route:
        """Where to write, queried only if it is not cached; NoRoute if no name server knows it."""
        route = self.known(topic)
        if route is not None:
            return route
        try:
            return await self.ask(topic)
        except (Closed, UnknownTopic, NotWritable):
            raise
        except SdkError:
            borrowed = self._known.get(topic)
            if borrowed is None or not borrowed.route.queues:
                raise
            # An old route is better than none while no name server answers.
            return borrowed.route

    async def readable(self, topic: str) -> Route:
        """The route for reading, queried only if it is not cached; UnknownTopic if none exists."""
        known = self._known.get(topic)
        if known is not None and not known.route.is_borrowed:
            return known.route
        return await self.ask_again(topic)

    async def ask_again(self, topic: str) -> Route:
        """Where to read, as a name server says it now."""
        route = await self._ask_once(topic)
        if route.is_borrowed:
            raise UnknownTopic(f"Topic {topic} does not exist.")
        return route

    async def ask(self, topic: str) -> Route:
        """Where to write, as a name server says it now."""
        route = await self._ask_once(topic)
        if not route.queues:
            raise NotWritable(f"Topic {topic} has no writable queues.")
        return route

    async def _ask_once(self, topic: str) -> Route:
        """Query the route from a name server; concurrent callers share one query."""
        task = self._asking.get(topic)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._find(topic))
            self._asking[topic] = task
            task.add_done_callback(lambda done: self._asked(topic, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise Closed("The client was closed.") from None

    async def refresh(self) -> None:
        """Refresh every route; one that cannot be queried stays the same."""
        topics = list(self._known)
        found = await asyncio.gather(*map(self._ask_once, topics), return_exceptions=True)
        failures: list[Exception] = []
        for topic, result in zip(topics, found, strict=True):
            known = self._known.get(topic)
            if known is None:
                continue
            if isinstance(result, UnknownTopic):
                known.missing_count += 1
                if known.missing_count >= MISSING_MAX:
                    del self._known[topic]
            elif isinstance(result, Exception):
                failures.append(result)
        if failures:
            _log.warning("could not refresh %d routes: %s", len(failures), failures[0])

    def cancel(self) -> None:
        """Cancel the queries under way, soon."""
        for task in list(self._asking.values()):
            task.cancel()

    async def close(self) -> None:
        """Cancel the queries under way."""
        tasks = list(self._asking.values())
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Private

    def _asked(self, topic: str, task: asyncio.Task[Route]) -> None:
        del self._asking[topic]
        if not task.cancelled() and task.exception() is None:
            now = asyncio.get_running_loop().time()
            before, route = self._known.get(topic), task.result()
            self._known[topic] = _Known(route, now)
            if before is not None and before.route.readable != route.readable:
                self._on_change(topic)

    async def _find(self, topic: str) -> Route:
        found = await self._ask(topic)
        if found.value is not None:
            return route_of(topic, found.value)
        if found.failure is not None and topic in self._known:
            # A name server that could not be reached may still know it.
            raise found.failure
        found = await self._ask(DEFAULT_TOPIC)
        if found.value is None:
            reason = f"Topic {topic} does not exist, and topics are not created automatically."
            raise UnknownTopic(reason)
        known = self._known.get(topic)
        if known is not None and not known.route.is_borrowed:
            raise UnknownTopic(f"Topic {topic} no longer exists.")
        return route_of(topic, found.value, is_borrowed=True)

    async def _ask(self, topic: str) -> Found[RouteData]:
        fields = headers.write(RouteHeader(topic=topic, accept_standard_json_only=True))
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        return await self._name_servers.find(code, fields, RouteData, f"route of {topic}")


def route_of(topic: str, data: RouteData, *, is_borrowed: bool = False) -> Route:
    """The route in a name server's answer, after validation."""
    brokers = brokers_of(data.broker_datas)
    masters = {name: found[MASTER] for name, found in brokers.items() if MASTER in found}
    writable: dict[str, int] = {}
    readable: dict[str, int] = {}
    for part in data.queue_datas:
        name = part.broker_name
        if name in masters and part.perm & WRITABLE:
            count = _count(topic, name, part.write_queue_nums)
            writable[name] = min(count, QUEUE_COUNT_OF_NEW) if is_borrowed else count
        if name in brokers and part.perm & READABLE:
            readable[name] = _count(topic, name, part.read_queue_nums)
    return Route(
        queues=_queues(topic, writable),
        addresses={name: masters[name] for name, count in writable.items() if count},
        readable=_queues(topic, readable),
        brokers={name: brokers[name] for name in writable.keys() | readable.keys()},
        is_borrowed=is_borrowed,
    )


def _count(topic: str, broker: str, count: int) -> int:
    if not 0 <= count <= QUEUE_COUNT_MAX:
        raise NoRoute(f"Invalid route of topic {topic}: broker {broker} has {count:,} queues.")
    return count


def _queues(topic: str, counts: dict[str, int]) -> tuple[Queue, ...]:
    total = sum(counts.values())
    if total > QUEUE_COUNT_MAX:
        raise NoRoute(
            f"Invalid route of topic {topic}: {len(counts)} brokers have {total:,} queues."
        )
    return tuple(
        Queue(topic, broker, number)
        for broker, count in sorted(counts.items())
        for number in range(count)
    )
