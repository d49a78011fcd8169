"""Who has a topic: asked of a name server, kept, and asked again every 30 s.

A topic that nobody knows yet borrows the route of TBW102: a send to it makes the topic there, with
at most `QUEUE_COUNT_OF_NEW` queues. A borrowed route is asked for again after a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.nameserver import RouteData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.nameserver import RouteHeader
from rockgate.sdk.errors import Closed, NoRoute, Refused, SdkError

DEFAULT_TOPIC: Final = "TBW102"
QUEUE_COUNT_OF_NEW: Final = 4
WRITABLE: Final = 2
MASTER: Final = 0
BORROWED_S_MAX: Final = 1.0
QUEUE_COUNT_MAX: Final = 65_536
"""More queues than any topic has; a route that claims more is refused."""

Ask = Callable[[str, int, Fields], Awaitable[Command]]
"""Asks an address for a code with these fields."""


class Queue(msgspec.Struct, frozen=True, order=True):
    """One queue of a topic: where a message can be sent to."""

    topic: str
    broker: str
    id: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """The queues of a topic that may be written, and where the masters of their brokers are."""

    queues: tuple[Queue, ...]
    addresses: dict[str, str]
    is_borrowed: bool = False


class Routes:
    """The routes that were asked for, by topic."""

    def __init__(self, name_servers: Sequence[str], ask: Ask) -> None:
        assert name_servers
        self._name_servers = list(name_servers)
        self._ask = ask
        self._known: dict[str, tuple[Route, float]] = {}
        self._asking: dict[str, asyncio.Task[Route]] = {}

    @property
    def addresses(self) -> set[str]:
        """Every broker of every route that is known."""
        return {
            address for route, _ in self._known.values() for address in route.addresses.values()
        }

    def known(self, topic: str) -> Route | None:
        """The route of a topic, if it need not be asked for."""
        found = self._known.get(topic)
        if found is None:
            return None
        route, asked_at = found
        if route.is_borrowed:
            now = asyncio.get_running_loop().time()
            return route if now - asked_at < BORROWED_S_MAX else None
        return route

    async def get(self, topic: str) -> Route:
        """The route of a topic, asked for only if it is not known; NoRoute if nobody knows it."""
        return self.known(topic) or await self.ask(topic)

    async def ask(self, topic: str) -> Route:
        """The route as a name server says it now; all who ask meanwhile get the same answer."""
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
            raise Closed("the client was closed") from None

    async def refresh(self) -> None:
        """Ask for every route again; one that cannot be had stays as it was."""
        topics = list(self._known)
        found = await asyncio.gather(*map(self.ask, topics), return_exceptions=True)
        for topic, result in zip(topics, found, strict=True):
            if isinstance(result, NoRoute):
                self._known.pop(topic, None)
            elif isinstance(result, BaseException) and not isinstance(result, SdkError):
                raise result

    async def close(self) -> None:
        """Give up what is being asked for."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Private

    def _asked(self, topic: str, task: asyncio.Task[Route]) -> None:
        del self._asking[topic]
        if not task.cancelled() and task.exception() is None:
            now = asyncio.get_running_loop().time()
            self._known[topic] = (task.result(), now)

    async def _find(self, topic: str) -> Route:
        data = await self._ask_any(topic)
        if data is not None:
            return route_of(topic, data)
        data = await self._ask_any(DEFAULT_TOPIC)
        if data is None:
            raise NoRoute(f"topic {topic} is unknown, and new topics are not made by sending")
        return route_of(topic, data, is_borrowed=True)

    async def _ask_any(self, topic: str) -> RouteData | None:
        """What the first name server that answers says; None if it does not know the topic."""
        fields = headers.write(RouteHeader(topic=topic, accept_standard_json_only=True))
        failed: SdkError | None = None
        for address in list(self._name_servers):
            try:
                answer = await self._ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
                if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                    return None
                if answer.code != ResponseCode.SUCCESS:
                    raise Refused(f"route of {topic}", answer.code, answer.remark)
                return javajson.decode(answer.body, RouteData, f"route of {topic}")
            except MalformedRequest as wrong:
                failed = NoRoute(f"{address}: {wrong}")
            except SdkError as wrong:
                failed = wrong
            # The next one first from now on.
            self._name_servers.remove(address)
            self._name_servers.append(address)
        assert failed is not None
        raise failed


def route_of(topic: str, data: RouteData, *, is_borrowed: bool = False) -> Route:
    """What a producer needs of a route: queues of brokers that have a master, if writable."""
    masters = {
        broker.broker_name: broker.broker_addrs[MASTER]
        for broker in data.broker_datas
        if MASTER in broker.broker_addrs
    }
    queues: list[Queue] = []
    for part in sorted(data.queue_datas, key=lambda part: part.broker_name):
        if part.broker_name not in masters or not part.perm & WRITABLE:
            continue
        count = part.write_queue_nums
        if is_borrowed:
            count = min(count, QUEUE_COUNT_OF_NEW)
        if not 0 <= count <= QUEUE_COUNT_MAX:
            raise NoRoute(f"topic {topic}: {part.broker_name} claims {count} queues")
        queues += (Queue(topic, part.broker_name, number) for number in range(count))
    if not queues:
        raise NoRoute(f"topic {topic} has no queue that may be written")
    used = {queue.broker for queue in queues}
    addresses = {name: address for name, address in masters.items() if name in used}
    return Route(queues=tuple(queues), addresses=addresses, is_borrowed=is_borrowed)
