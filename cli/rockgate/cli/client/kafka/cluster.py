"""A cluster of brokers: discovery, routing to the right broker, and retries when that has moved.

A partition's leader, a group's coordinator and the controller may be three brokers. Each is looked
up when it is needed, and again after a response that says "not me", until the time is over.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import Final, Self, TypeVar

from rockgate.cli.client.kafka.broker import Broker, Dial, dial_tcp
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unreachable, Unusable
from rockgate.cli.client.kafka.login import Login
from rockgate.cli.client.kafka.view import NO_NODE, Place, Topic, View, view_of
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

R = TypeVar("R")

TIMEOUT_S: Final = 10.0
CLIENT_ID: Final = "rockgate"
_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 1.0

LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class CoordinatorType(IntEnum):
    """What a coordinator is looked up for."""

    GROUP = 0
    TRANSACTION = 1

    def of(self, key: str) -> str:
        """How error messages name it."""
        return f"group {key}" if self is CoordinatorType.GROUP else f"transactional id {key}"


class Cluster:
    """All brokers that `seeds` lead to, with one connection to each that is asked."""

    def __init__(
        self,
        seeds: Sequence[Address],
        *,
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
        dial: Dial = dial_tcp,
        login: Login | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._seeds = tuple(seeds)
        self._client_id = client_id
        self._dial = dial
        self._login = login
        # The response to a join is delayed for seconds, so joins have their own connection.
        self._brokers: dict[tuple[Address, str], Broker] = {}
        self._first: Broker | None = None
        self._nodes: dict[int, Address] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in self._brokers.values():
            broker.close()
        await asyncio.gather(*(broker.ended() for broker in self._brokers.values()))
        # Transports close in the loop's next turn, which the end of a command would not grant.
        await asyncio.sleep(0)

    # Finding a broker

    async def anyone(self) -> Broker:
        """A reachable broker: the last one used, a seed, or one from its metadata."""
        candidates = [self._first] if self._first else []
        candidates += [self._broker(each) for each in (*self._seeds, *self._nodes.values())]
        failures: dict[str, Unreachable] = {}
        for broker in candidates:
            if str(broker.address) in failures:
                continue
            try:
                await broker.connect()
            except Unreachable as error:
                failures[str(broker.address)] = error
            else:
                self._first = broker
                return broker
        kinds = {type(each) for each in failures.values()}
        kind = kinds.pop() if len(kinds) == 1 else Unreachable
        raise kind(" ".join(str(each) for each in failures.values()))

    async def metadata(
        self, topics: Collection[str] | None = None, *, creates: bool = False
    ) -> View:
        """The brokers and these topics, or all; `creates` lets the server make missing ones."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=n) for n in topics],
            allow_auto_topic_creation=creates,
        )
        answer = await (await self.anyone()).ask(request, MetadataResponse)
        if answer.error_code:
            raise Refused(answer.error_code, what="metadata")
        view = view_of(answer)
        self._nodes = {each.node_id: each.address for each in view.nodes.values()}
        return view

    async def found(self, topics: Collection[str]) -> View:
        """The same after a while without a server: asked again until the time is over."""
        async with self.deadline("the server") as pause:
            while True:
                try:
                    return await self.metadata(topics)
                except Unreachable as error:
                    await pause(error)

    async def topics(self, names: Collection[str]) -> Mapping[str, Topic]:
        """These topics, all of which must be there."""
        view = await self.metadata(names)
        for name in names:
            topic = view.topics.get(name)
            if topic is None or topic.error_code:
                code = topic.error_code if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise Refused(code, what=f"topic {name}")
        return view.topics

    async def controller(self) -> Broker:
        """The controller, which handles changes of topics and configs."""
        view = await self.metadata(())
        return self.node(view.controller) if view.controller in self._nodes else await self.anyone()

    def node(self, node_id: int) -> Broker:
        """A broker by its number."""
        if node_id not in self._nodes:
            known = ", ".join(map(str, sorted(self._nodes))) or "none"
            raise Unusable(f"Broker {node_id} does not exist (known: {known})")
        return self._broker(self._nodes[node_id])

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The brokers that the last Metadata named."""
        return tuple(self._nodes)

    async def coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> Broker:
        """The coordinator of a group or a transactional id, as soon as there is one."""
        async with self.deadline(f"a coordinator for {kind.of(key)}") as pauses:
            while True:
                try:
                    return await self._find(key, kind)
                except Refused as error:
                    if error.code not in COORDINATOR_MOVED:
                        raise error.about(kind.of(key)) from None
                    await pauses(error)

    # Asking again

    @asynccontextmanager
    async def deadline(self, what: str) -> AsyncIterator[Callable[[ClientError], Awaitable[None]]]:
        """Returns `pause(error)`: wait before another attempt, or raise when time is up."""
        until = asyncio.get_running_loop().time() + self.timeout_s
        pause_s = _PAUSE_S

        async def pause(error: ClientError) -> None:
            nonlocal pause_s
            if asyncio.get_running_loop().time() + pause_s > until:
                if isinstance(error, Refused):
                    raise error
                raise Unreachable(
                    f"Timed out after {self.timeout_s:g} s waiting for {what}: {error}"
                )
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

        yield pause

    async def ask_coordinator(
        self,
        key: str,
        ask: Callable[[Broker], Awaitable[R]],
        kind: CoordinatorType = CoordinatorType.GROUP,
        *,
        again: Collection[int] = COORDINATOR_MOVED,
    ) -> R:
        """Call `ask` with a coordinator; repeat it if that moved, or for one of `again`."""
        async with self.deadline(kind.of(key)) as pause:
            while True:
                broker = await self.coordinator(key, kind)
                try:
                    return await ask(broker)
                except Refused as error:
                    if error.code not in again:
                        raise error.about(error.what or kind.of(key)) from None
                    await pause(error)

    async def ask_leaders(
        self,
        places: Collection[Place],
        ask: Callable[[Broker, list[Place]], Awaitable[Mapping[Place, R | Refused]]],
    ) -> dict[Place, R | Refused]:
        """Call `ask` for each partition at its leader; repeat it for partitions that moved."""
        done: dict[Place, R | Refused] = {}
        pending = list(dict.fromkeys(places))
        async with self.deadline("partition leaders") as pause:
            while pending:
                found = await self._ask_leaders_once(pending, ask)
                moved = {
                    place: each
                    for place, each in found.items()
                    if isinstance(each, Refused) and each.code in LEADER_MOVED
                }
                done |= {place: found[place] for place in pending if place not in moved}
                for error in list(moved.values())[:1]:
                    await pause(error)
                pending = list(moved)
        return done

    # Private

    def _broker(self, address: Address, use: str = "") -> Broker:
        key = (address, use)
        if key not in self._brokers:
            self._brokers[key] = Broker(
                address,
                client_id=self._client_id,
                timeout_s=self.timeout_s,
                dial=self._dial,
                login=self._login,
            )
        return self._brokers[key]

    async def _find(self, key: str, kind: CoordinatorType) -> Broker:
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        answer = await (await self.anyone()).ask(request, FindCoordinatorResponse)
        if answer.coordinators:
            (found,) = answer.coordinators
            code, message, host, port = (
                found.error_code,
                found.error_message,
                found.host,
                found.port,
            )
        else:
            code, message, host, port = (
                answer.error_code,
                answer.error_message,
                answer.host,
                answer.port,
            )
        if code:
            raise Refused(code, message)
        return self._broker(Address(host, port), "coordinator")

    async def _ask_leaders_once(
        self,
        places: Sequence[Place],
        ask: Callable[[Broker, list[Place]], Awaitable[Mapping[Place, R | Refused]]],
    ) -> dict[Place, R | Refused]:
        view = await self.metadata({topic for topic, _ in places})
        found: dict[Place, R | Refused] = {}
        by_leader: dict[int, list[Place]] = {}
        for place in places:
            leader = leader_of(view, place)
            if isinstance(leader, Refused):
                found[place] = leader
            else:
                by_leader.setdefault(leader, []).append(place)
        answers = await asyncio.gather(
            *(ask(self.node(leader), asked) for leader, asked in by_leader.items())
        )
        for answer in answers:
            found |= answer
        unanswered = Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "the server returned no result for it")
        return {place: found.get(place, unanswered) for place in places}


def leader_of(view: View, place: Place) -> int | Refused:
    """The node that leads a partition, or why there is none to ask."""
    name, index = place
    topic = view.topics.get(name)
    if topic is None or topic.error_code:
        return Refused(topic.error_code if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partitions.get(index)
    if partition is None:
        count = len(topic.partitions)
        return Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic has partitions 0 to {count - 1}"
        )
    if partition.leader == NO_NODE or partition.leader not in view.nodes:
        return Refused(ErrorCode.LEADER_NOT_AVAILABLE)
    return partition.leader
