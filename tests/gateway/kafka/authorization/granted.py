"""A server in memory that authorizes: all handlers behind their guards, and grants in a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from tests.gateway.kafka.admin import IDENTITY, MEMORY_MAX
from tests.world import World

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.compose.kafka.assembly import KafkaAssembly
from rockgate.gateway.compose.security import SecurityAssembly, SecurityFolds
from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.server.dispatch import Dispatcher, PendingAnswer
from rockgate.gateway.net.address import Address
from rockgate.gateway.security.grants import (
    CLUSTER_NAME,
    IMPLYING_DESCRIBE,
    IMPLYING_DESCRIBE_CONFIGS,
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import ClientConnection, ServerConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import declaration_of, decode, encode
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics

ADMIN = Principal.user("admin")
ALICE = Principal.user("alice")
_IMPLIED = {
    AclOperation.DESCRIBE: IMPLYING_DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS: IMPLYING_DESCRIBE_CONFIGS,
}


def allow(
    principal: Principal,
    operation: AclOperation,
    resource_type: AclResourceType,
    name: str = CLUSTER_NAME,
    permission: Permission = Permission.ALLOW,
) -> Grant:
    """A literal grant from any host."""
    return Grant(
        resource_type, name, PatternType.LITERAL, str(principal), WILDCARD, operation, permission
    )


class GrantList:
    """Access by a list of literal grants; `admin` is a super user. Counts its decisions."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._grants = list(grants)
        self.generation = 1
        self.asked_count = 0

    def add(self, *grants: Grant) -> None:
        self._grants += grants
        self.generation += 1

    def revoke(self, *grants: Grant) -> None:
        self._grants = [each for each in self._grants if each not in grants]
        self.generation += 1

    def may(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        self.asked_count += 1
        if principal == ADMIN:
            return True
        found = [
            each
            for each in self._grants
            if each.principal == str(principal)
            and each.resource_type == resource_type
            and each.resource_name in (name, WILDCARD)
        ]
        own = {operation, AclOperation.ALL}
        if any(each.permission == Permission.DENY and each.operation in own for each in found):
            return False
        own |= _IMPLIED.get(operation, frozenset())
        return any(each.operation in own for each in found if each.permission == Permission.ALLOW)

    def may_on_any(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        /,
    ) -> bool:
        names = {each.resource_name for each in self._grants}
        return principal == ADMIN or any(
            self.may(principal, host, operation, resource_type, name) for name in names
        )


class Refusals:
    """An audit log that keeps what was refused, at most `count_max`."""

    def __init__(self, count_max: int = 1_000) -> None:
        self._count_max = count_max
        self.found: list[tuple[str, str, str, str]] = []

    def refused(
        self, principal: Principal, host: str, *, api: str, operation: str, resource: str
    ) -> None:
        if len(self.found) < self._count_max:
            self.found.append((str(principal), api, operation, resource))


class GuardedWorld(World):
    """A store with Kafka's folds, and the assembly of the listener with guards."""

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.folds = KafkaFolds.make(journal, topics)
        self.security = SecurityFolds.make(journal)
        return [*self.folds.all(), *self.security.all()]


class GuardedServer:
    """All handlers behind guards. Requests are values, as are responses."""

    def __init__(self, dispatcher: Dispatcher, access: GrantList, audit: Refusals) -> None:
        self.dispatcher = dispatcher
        self.access = access
        self.audit = audit
        self._numbers = count(1)

    @classmethod
    @asynccontextmanager
    async def running(cls, grants: Iterable[Grant] = ()) -> AsyncIterator[Self]:
        access, audit, world = GrantList(grants), Refusals(), GuardedWorld()
        async with AsyncExitStack() as resources:
            store, poll_registry = world.store, PollRegistry()
            stalls = Stalls(store.clock)
            store.attach(on_append=poll_registry.wake, on_flushed=poll_registry.wake_flushed)
            poll_registry.follow(store.topics, store.queues)
            threads = BatchThreads()
            resources.callback(threads.close)
            folder = Path(resources.enter_context(TemporaryDirectory()))
            config = gather().config
            config = replace(config, server=replace(config.server, data_dir=folder))
            assembly = KafkaAssembly(
                config=config,
                identity=IDENTITY,
                store=store,
                security=SecurityAssembly(
                    config=replace(config.security, authorization="on", delegation_tokens=True),
                    folds=world.security,
                    data_dir=folder,
                    is_authenticating=True,
                    clock=store.clock,
                    resources=resources,
                ),
                folds=world.folds,
                poll_registry=poll_registry,
                durability=Durability(store),
                cold_reads=ColdReads(store.residency, store.log),
                telemetry=Telemetry(),
                threads=threads,
                stalls=stalls,
                permissions=Permissions(access, audit),
            )
            groups = assembly.make_groups(resources)
            resources.callback(poll_registry.finish)
            resources.callback(groups.finish)
            services = assembly.services(
                (),
                groups,
                Throttling(
                    quotas=world.folds.quotas,
                    config=config.quotas,
                    clock=asyncio.get_running_loop(),
                ),
            )
            yield cls(Dispatcher(assembly.rows(), services), access, audit)

    def peer(self, principal: Principal = ALICE) -> Peer:
        """A connection of a client that has authenticated."""
        local, remote = Address("127.0.0.1", 9092), Address("127.0.0.1", 50_000)
        peer = Peer(connection_id=next(self._numbers), local=local, remote=remote)
        peer.become(principal)
        return peer

    def send(self, peer: Peer, request: Any, version: int) -> Any:
        """The dispatcher's answer, at once or to come."""
        key = declaration_of(type(request)).key
        assert key is not None
        client = ClientConnection(client_id="me")
        client.send(ApiKey(key), version, [encode(request, version)])
        (exchange,) = ServerConnection().receive_data(b"".join(client.data_to_send()))
        return self.dispatcher.dispatch(exchange, peer)

    async def ask(self, peer: Peer, request: Any, version: int) -> Any:
        """The response, as a client reads it."""
        return await self.received(self.send(peer, request, version), request, version)

    async def received(self, answer: Any, request: Any, version: int) -> Any:
        """A response, once it is there."""
        if isinstance(answer, PendingAnswer):
            await asyncio.wait([answer.future])
            answer = answer.answer()
        response = response_of(request)
        return decode(response, version, b"".join(answer), memory_max=MEMORY_MAX)


def response_of(request: Any) -> type[Any]:
    """The type of the response to a request."""
    key = declaration_of(type(request)).key
    assert key is not None
    found: type[Any] = APIS[ApiKey(key)].response
    return found
