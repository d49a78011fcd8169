"""A grant or a user that is revoked while a request waits: its answer has no data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.differential.player import Wire
from tests.gateway.http.test_access import made
from tests.gateway.kafka import sasl_wire
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.test_signed_requests import SigningClient

from rockgate.gateway.compose import app
from rockgate.gateway.compose.app import Server
from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.users import User, UserStatus, UserType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.remoting.codes import RequestCode as C
from rockgate.protocol.remoting.codes import ResponseCode

pytestmark = pytest.mark.row("SEC-3")

READ, ALL = AclOperation.READ, AclOperation.ALL
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
BODY = b"not for bob any more"


def grant(type_: AclResourceType, name: str) -> Grant:
    return Grant(type_, name, PatternType.LITERAL, "User:bob", "*", READ, Permission.ALLOW)


TO_READ = [grant(TOPIC, "orders"), grant(GROUP, "readers")]


class Scene:
    """A server on which bob reads what admin sends."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.users = server.security.users

    def dial(self, user: str) -> Client:
        address = self.server.addresses["remoting"]
        return SigningClient((address.host, address.port), user)

    def log_in(self) -> Wire:
        address = self.server.addresses["kafka"]
        return sasl_wire.opened(
            (address.host, address.port),
            lambda each: sasl_wire.scram(each, "bob", "secret-of-bob"),
        )

    async def send(self) -> None:
        """A message of someone else, on every queue."""
        admin = await asyncio.to_thread(self.dial, "admin")
        for queue in range(4):
            sent = await asyncio.to_thread(admin.publish, "orders", BODY, queue=queue)
            assert sent.code == ResponseCode.SUCCESS, sent.remark
        admin.socket.close()

    def revoke(self) -> None:
        self.server.security.grants.remove(TO_READ[:1])

    def remove(self) -> None:
        self.users.put({"bob": None})

    def disable(self) -> None:
        known = self.users.find("bob")
        assert known is not None
        self.users.put({"bob": known._replace(status=UserStatus.DISABLED)})

    def deny(self) -> None:
        self.server.security.grants.add([TO_READ[0]._replace(permission=Permission.DENY)])


Change = Callable[[Scene], None]
GRANTS: list[Change] = [Scene.revoke, Scene.deny]
USERS: list[Change] = [Scene.remove, Scene.disable]


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(app, "tune_collector", lambda: None)
    server = made(
        tmp_path,
        kafka__security_protocol="SASL_PLAINTEXT",
        remoting__listen="127.0.0.1:0",
        remoting__authentication="signature",
    )
    async with AsyncExitStack() as resources:
        await server.start(resources)
        made_users = {}
        for name, type_ in (("admin", UserType.SUPER), ("bob", UserType.NORMAL)):
            secret = f"secret-of-{name}"
            sealed = server.security.logins.sealed(name, secret)
            made_users[name] = User(type=type_, scram=scram_of(secret, 4_096), sealed=sealed)
        server.security.users.put(made_users)
        server.security.grants.add(TO_READ)
        scene = Scene(server)
        await scene.send()
        yield scene


def waiting_fetch(offset: int = 1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
        forgotten_topics_data=[],
    )


async def is_waiting(answer: asyncio.Task[Any]) -> bool:
    """Whether a request has no answer yet, although later ones were answered."""
    await asyncio.wait([answer], timeout=0.3)
    return not answer.done()


@pytest.mark.parametrize("change", GRANTS)
async def test_a_fetch_that_waits_returns_no_data_of_a_grant_that_is_gone(
    scene: Scene, change: Change
) -> None:
    wire = await asyncio.to_thread(scene.log_in)
    seen = await asyncio.to_thread(wire.ask, waiting_fetch(0), FetchResponse, 11)
    assert BODY in bytes(seen.responses[0].partitions[0].records or b""), "it may read"
    asked = asyncio.create_task(asyncio.to_thread(wire.ask, waiting_fetch(), FetchResponse, 11))
    assert await is_waiting(asked)
    change(scene)
    await scene.send()
    answer = await asked
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not partition.records
    wire.close()


@pytest.mark.parametrize("change", USERS)
async def test_a_fetch_that_waits_ends_with_its_user(scene: Scene, change: Change) -> None:
    wire = await asyncio.to_thread(scene.log_in)
    await asyncio.to_thread(wire.send, waiting_fetch(), 11)
    closed = asyncio.create_task(asyncio.to_thread(sasl_wire.is_closed, wire))
    assert await is_waiting(closed)
    change(scene)
    assert await closed
    await scene.send()
    wire.close()


PULL = {
    "consumerGroup": "readers",
    "topic": "orders",
    "queueId": 1,
    "queueOffset": 1,
    "maxMsgNums": 32,
    "sysFlag": 6,
    "suspendTimeoutMillis": 60_000,
    "subscription": "*",
}
POP = {
    "consumerGroup": "readers",
    "topic": "orders",
    "queueId": -1,
    "maxMsgNums": 32,
    "invisibleTime": 60_000,
    "pollTime": 60_000,
    "bornTime": 0,
    "initMode": 0,
    "exp": "*",
    "expType": "TAG",
}


@pytest.mark.parametrize("change", [*GRANTS, *USERS])
@pytest.mark.parametrize(("code", "fields"), [(C.PULL_MESSAGE, PULL), (C.POP_MESSAGE, POP)])
async def test_a_pull_and_a_pop_that_wait_return_nothing_once_they_may_not(
    scene: Scene, change: Change, code: C, fields: dict[str, Any]
) -> None:
    bob = await asyncio.to_thread(scene.dial, "bob")
    if code is C.POP_MESSAGE:
        fields = {**fields, "bornTime": time.time_ns() // 1_000_000}
        while (await asyncio.to_thread(bob.ask, code, {**fields, "pollTime": 0})).code == 0:
            pass  # until it has taken what is there
    asked = asyncio.create_task(asyncio.to_thread(bob.ask, code, fields))
    assert await is_waiting(asked)
    change(scene)
    await scene.send()
    answer = await asked
    assert answer.code == ResponseCode.NO_PERMISSION
    assert BODY not in bytes(answer.body)
    bob.socket.close()


async def test_a_request_after_its_grant_was_revoked_is_refused_on_the_same_connection(
    scene: Scene,
) -> None:
    wire = await asyncio.to_thread(scene.log_in)
    scene.revoke()
    seen = await asyncio.to_thread(wire.ask, waiting_fetch(0), FetchResponse, 11)
    (partition,) = seen.responses[0].partitions
    assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and not partition.records
    wire.close()
