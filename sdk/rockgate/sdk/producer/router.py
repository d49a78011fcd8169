"""Delivers a packed request to a broker: selection, attempts, and retries elsewhere.

docs/reference/sdk.md, "Sending", has the table of what is retried. All attempts of one call share
one time budget.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.send import RecalledHeader, RecallHeader
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.connection import Link
from rockgate.sdk.client.routes import Route
from rockgate.sdk.errors import (
    Closed,
    ErrorCode,
    InvalidMessage,
    NoRoute,
    NotSupported,
    Refused,
    SdkError,
    SendFailed,
    TimedOut,
    Unreachable,
)
from rockgate.sdk.namespaces import wrap
from rockgate.sdk.producer.codec import HeaderCache, results_of
from rockgate.sdk.producer.faults import FAILED_S, Faults
from rockgate.sdk.producer.outgoing import Outgoing
from rockgate.sdk.results import Queue, SendResult, SendStatus

CURED_ELSEWHERE: Final = frozenset(
    (
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    )
)
"""Codes of errors that another broker may not return."""

TIMED_SINCE: Final = 412
"""The number of RocketMQ 5.0.0 (its snapshots too) in the header of every command."""
OUR_LANGUAGE: Final = "PYTHON"
"""The language in rockgate's answers; Apache's brokers say JAVA."""
ROUTE_AGAIN_S_MAX: Final = 0.5
"""How long a try waits for a name server to say whether the route has changed."""
LOGGED_MAX: Final = 8
"""How many attempts an error lists: the last ones."""

Selector = Callable[[Sequence[Queue]], Queue]
"""Chooses one of a topic's queues."""
Choose = Callable[[Route], Queue]


class Router:
    """Sends in the name of a group, over the connections of a client."""

    def __init__(
        self,
        client: Client,
        group: str,
        *,
        timeout_s: float,
        retry_count: int,
        retry_not_ok: bool,
        avoid_slow: bool,
        namespace: str = "",
    ) -> None:
        self._client = client
        self._group = group
        self._timeout_s = timeout_s
        self._retry_count = retry_count
        self._retry_not_ok = retry_not_ok
        self._namespace = namespace
        self._faults = Faults(is_on=avoid_slow)
        self._turn = random.randrange(1 << 16)
        self._headers = HeaderCache(group, namespace)
        self._unwrapped_routes: dict[str, tuple[Route, Route]] = {}

    def budget(self, timeout_s: float | None = None) -> Budget:
        """The time budget of one call, from now on."""
        return Budget(self._timeout_s if timeout_s is None else timeout_s)

    async def deliver(
        self, outgoing: Outgoing, choose: Choose | None, timeout_s: float | None
    ) -> list[SendResult]:
        """Send it and wait for the answer: a result for each message in it."""
        budget = self.budget(timeout_s)
        attempts: list[str] = []
        attempt_count = 0
        failed: set[str] = set()
        weak: list[SendResult] | None = None
        error: SdkError | None = None
        tries_left = 1 if choose else 1 + self._retry_count
        route = self._known(outgoing.topic) or await self.route(outgoing.topic, budget)
        chosen = choose(route) if choose else None
        while tries_left and (left_s := budget.left_s) > 0:
            queue = chosen or self._next(route, failed)
            error = None
            attempt_count += 1
            try:
                results = await self._attempt(outgoing, route, queue, budget, left_s)
                if results[0].status is SendStatus.OK or not self._retry_not_ok:
                    return results
                weak = results
                attempts.append(f"{queue.broker}: {results[0].status.name}.")
                tries_left -= 1
            except Refused as refused:
                if chosen or refused.code not in CURED_ELSEWHERE:
                    if weak is not None:
                        return weak
                    raise
                error = refused
                tries_left -= 1
            except (Unreachable, TimedOut) as lost:
                error = lost
                # An attempt that was never sent does not count: the broker may recover in time.
                tries_left -= not (isinstance(lost, Unreachable) and lost.retry_in_s > 0)
            if error is not None:
                attempts.append(f"{queue.broker}: {error}")
            del attempts[:-LOGGED_MAX]
            failed.add(queue.broker)
            if isinstance(error, Unreachable) and error.retry_in_s > 0:
                await self._wait(route, failed if chosen is None else None, error, budget)
            if budget.left_s > 0:
                route = await self._route_again(outgoing.topic, route, budget)
        if weak is not None:
            return weak
        if chosen and error is not None:
            raise error
        where = " and ".join(sorted(failed)) or "no broker"
        count = f"{attempt_count} attempt{'s' * (attempt_count != 1)}"
        reason = f"failed after {count} in {budget.used_s:.3g} s at {where}."
        code = ErrorCode.ACCESS_BROKER_TIMEOUT if error is None else error.code
        raise SendFailed(f"Send to {outgoing.topic} {reason}", attempts, code=code) from error

    async def oneway(
        self, outgoing: Outgoing, choose: Choose | None, timeout_s: float | None
    ) -> None:
        """Send it once, without waiting for a response."""
        budget = self.budget(timeout_s)
        route = self._known(outgoing.topic) or await self.route(outgoing.topic, budget)
        queue = choose(route) if choose else self._next(route, set())
        address = route.addresses.get(queue.broker) or await self._address(route, queue, budget)
        link = self._client.broker(address)
        if outgoing.is_timed or outgoing.is_delayed_half:
            await self._check_broker(link, outgoing, queue, budget)
        timeout_s = max(budget.left_s, 0.0)
        if self._is_plain(link, outgoing):
            write = self._headers.writer(outgoing, queue)
            await link.send_oneway(outgoing.code, write, outgoing.body, timeout_s)
        else:
            fields = outgoing.fields(self._group, wrap(self._namespace, outgoing.topic), queue)
            await link.oneway(outgoing.code, fields, outgoing.body, timeout_s=timeout_s)

    async def recall(self, result: SendResult, timeout_s: float | None) -> str:
        """Cancel a delayed message that is not due yet; returns its id."""
        if not result.recall_handle:
            raise InvalidMessage(
                "The message has no recall handle: it was not sent with a delivery time."
            )
        budget = self.budget(timeout_s)
        link = await self.link(result.queue, budget)
        header = RecallHeader(
            producer_group=self._group,
            topic=wrap(self._namespace, result.queue.topic),
            recall_handle=result.recall_handle,
            bname=result.queue.broker,
        )
        answer = await link.request(
            RequestCode.RECALL_MESSAGE, headers.write(header), timeout_s=budget.left_s
        )
        if answer.code != ResponseCode.SUCCESS:
            raise Refused(f"recall from {result.queue.topic}", answer.code, answer.remark)
        try:
            return headers.read(answer, RecalledHeader).msg_id
        except MalformedRequest as wrong:
            reason = f"cannot decode the response: {wrong.reason}"
            raise Refused(f"recall from {result.queue.topic}", answer.code, reason) from None

    async def link(self, queue: Queue, budget: Budget) -> Link:
        """The connection to the broker of a queue; for an unknown broker the route is refreshed."""
        route = await self.route(queue.topic, budget)
        return self._client.broker(await self._address(route, queue, budget))

    async def route(self, topic: str, budget: Budget, *, anew: bool = False) -> Route:
        """The route of the topic, if known in time; its queues have the topic's plain name."""
        routes = self._client.routes
        name = wrap(self._namespace, topic)
        try:
            async with asyncio.timeout(budget.left_s):
                found = await (routes.ask(name) if anew else routes.get(name))
        except TimeoutError:
            raise TimedOut(f"Looking up the route of topic {topic} timed out.") from None
        return self._without_namespace(topic, found)

    # Private

    def _known(self, topic: str) -> Route | None:
        if not self._namespace:
            return self._client.routes.known(topic)
        found = self._client.routes.known(wrap(self._namespace, topic))
        return None if found is None else self._without_namespace(topic, found)

    def _without_namespace(self, topic: str, route: Route) -> Route:
        """The route as the caller sees it: without the namespace."""
        if not self._namespace:
            return route
        cached = self._unwrapped_routes.get(topic)
        if cached is None or cached[0] is not route:
            queues = tuple(Queue(topic, queue.broker, queue.id) for queue in route.queues)
            cached = self._unwrapped_routes[topic] = (route, replace(route, queues=queues))
        return cached[1]

    async def _address(self, route: Route, queue: Queue, budget: Budget) -> str:
        """The address of the queue's broker; for an unknown broker the route is refreshed."""
        if queue.broker not in route.addresses:
            route = await self.route(queue.topic, budget, anew=True)
        address = route.addresses.get(queue.broker)
        if address is None:
            raise NoRoute(
                f"Topic {queue.topic} has no broker {queue.broker}.", ErrorCode.BROKER_NOT_EXIST
            )
        return address

    def _next(self, route: Route, failed: set[str]) -> Queue:
        """The queue whose turn it is; of a broker that failed only if there is no other.

        Brokers that were slow are passed over next to last, the better half of them first: better
        late than not at all.
        """
        self._turn += 1
        count = len(route.queues)
        first = route.queues[self._turn % count]
        is_plain = not failed and not self._faults.is_on
        if is_plain and not self._client.is_backing_off(route.addresses[first.broker]):
            return first
        now = asyncio.get_running_loop().time()
        slow: list[Queue] = []
        for step in range(count):
            queue = route.queues[(self._turn + step) % count]
            address = route.addresses[queue.broker]
            if queue.broker in failed or self._client.is_backing_off(address):
                continue
            if not self._faults.is_avoided(queue.broker, now):
                return queue
            slow.append(queue)
        if not slow:
            return first
        half = self._faults.better_half({queue.broker for queue in slow})
        better = [queue for queue in route.queues if queue.broker in half]
        return better[self._turn % len(better)]

    async def _attempt(
        self, outgoing: Outgoing, route: Route, queue: Queue, budget: Budget, left_s: float
    ) -> list[SendResult]:
        """One try, with what is left of the budget as it begins."""
        address = route.addresses.get(queue.broker)
        if address is None:
            address = await self._address(route, queue, budget)
            left_s = budget.left_s
        link = self._client.broker(address)
        if outgoing.is_timed or outgoing.is_delayed_half:
            await self._check_broker(link, outgoing, queue, budget)
            left_s = budget.left_s
        if not self._faults.is_on:
            return results_of(outgoing, queue, await self._ask(link, outgoing, queue, left_s))
        began = asyncio.get_running_loop().time()
        latency_s: float | None = None
        try:
            results = results_of(outgoing, queue, await self._ask(link, outgoing, queue, left_s))
            latency_s = asyncio.get_running_loop().time() - began
            return results
        except (Refused, Unreachable, TimedOut):
            latency_s = FAILED_S
            raise
        finally:
            # A send that was cancelled says nothing about its broker.
            if latency_s is not None:
                self._faults.note(queue.broker, latency_s, asyncio.get_running_loop().time())

    async def _ask(self, link: Link, outgoing: Outgoing, queue: Queue, left_s: float) -> Command:
        timeout_s = left_s if left_s > 0 else 0.0
        if self._is_plain(link, outgoing):
            write = self._headers.writer(outgoing, queue)
            return await link.ask(outgoing.code, write, outgoing.body, timeout_s)
        fields = outgoing.fields(self._group, wrap(self._namespace, outgoing.topic), queue)
        return await link.request(outgoing.code, fields, outgoing.body, timeout_s=timeout_s)

    @staticmethod
    def _is_plain(link: Link, outgoing: Outgoing) -> bool:
        """Whether its header can be written by hand: no hook reads it, and it has no counts."""
        return not (
            link.hooks or outgoing.reconsume_times or outgoing.max_reconsume_times is not None
        )

    async def _check_broker(
        self, link: Link, outgoing: Outgoing, queue: Queue, budget: Budget
    ) -> None:
        """Refuse to send what this broker would deliver at once, or never."""
        if link.version is None:
            await self._client.learn(link, max(budget.left_s, 0.0))
        if outgoing.is_timed and (link.version or 0) < TIMED_SINCE:
            raise NotSupported(
                f"Broker {queue.broker} is older than 5.0 and does not support delivery times. "
                "Use a delay level from 1 to 18."
            )
        if outgoing.is_delayed_half and link.language != OUR_LANGUAGE:
            raise NotSupported(
                f"Broker {queue.broker} is Apache RocketMQ, which loses delayed half messages. "
                "Send it without a delay."
            )

    async def _wait(
        self, route: Route, failed: set[str] | None, error: Unreachable, budget: Budget
    ) -> None:
        """Wait for a broker that is away, unless there is another that may take it."""
        if failed is not None and any(
            broker not in failed and not self._client.is_backing_off(address)
            for broker, address in route.addresses.items()
        ):
            return
        await self._client.pause(max(0.0, min(error.retry_in_s, budget.left_s)))

    async def _route_again(self, topic: str, route: Route, budget: Budget) -> Route:
        """Refresh the route of the topic before the next attempt."""
        try:
            # The brokers that are left may well take it while no name server answers.
            soon = Budget(min(budget.left_s, ROUTE_AGAIN_S_MAX))
            return await self.route(topic, soon, anew=True)
        except Closed:
            raise
        except SdkError:
            return route


LEFT_S_MIN: Final = 1e-6


class Budget:
    """The time that one call may take, whatever it tries."""

    __slots__ = ("_began", "_loop", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._seconds = seconds

    @property
    def used_s(self) -> float:
        """The seconds used so far."""
        return self._loop.time() - self._began

    @property
    def left_s(self) -> float:
        """The seconds left; none or less when it is used up."""
        left_s = self._seconds - self._loop.time() + self._began
        # A loop runs timers a little early: what is left then would be waited for again and again.
        return left_s if left_s > LEFT_S_MIN else min(left_s, 0.0)


def choice(
    queue: Queue | None, key: str | bytes | None, selector: Selector | None
) -> Choose | None:
    """How the queue is chosen, if the caller chooses."""
    if (queue is not None) + (key is not None) + (selector is not None) > 1:
        raise InvalidMessage("Give only one of queue, key and selector.")
    if queue is not None:
        return lambda _: queue
    if key is not None:
        number = zlib.crc32(key.encode() if isinstance(key, str) else key)
        return lambda route: route.queues[number % len(route.queues)]
    if selector is None:
        return None

    def select(route: Route) -> Queue:
        chosen = selector(route.queues)
        if not isinstance(chosen, Queue):
            raise InvalidMessage(f"The selector must return a Queue, not {chosen!r}.")
        return chosen

    return select
