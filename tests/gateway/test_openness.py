"""When a server takes requests: not before it can do what they ask, and not after the store."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.pullworld import PullWorld

from rockgate.gateway.compose import app, storage
from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.config.sources import Given
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.errors import StoreClosed, StoreCorrupt, StoreError
from rockgate.store.store import Store

PORTS = ("kafka", "remoting", "namesrv")
SETTINGS = {
    "store.segment_bytes": str(16 << 20),
    **{f"{port}.listen": "127.0.0.1:0" for port in (*PORTS, "http")},
}


@pytest.fixture(autouse=True)
def _untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is not the server's own: its collector stays as it is."""
    monkeypatch.setattr(app, "tune_collector", lambda: None)


def made(folder: Path) -> Server:
    given = {**SETTINGS, "server.data_dir": str(folder)}
    return Server(
        gather(
            [Given(name=name, value=value, origin="a test") for name, value in given.items()]
        ).config
    )


def is_open(server: Server, port: str) -> bool:
    """Whether a server listens there; the kernel answers, and no turn of the loop is needed."""
    address = server.addresses[port]
    try:
        socket.create_connection((address.host, address.port), timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.row("SND-3")
async def test_a_port_is_open_when_a_send_to_it_is_taken_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = made(tmp_path)
    seen: list[bool] = []

    async def open_store(*what: Any, **more: Any) -> Store:
        seen.extend(is_open(server, port) for port in PORTS)
        return await storage.open_store(*what, **more)

    monkeypatch.setattr(app, "open_store", open_store)
    async with AsyncExitStack() as resources:
        await server.start(resources)
        assert seen == [False, False, False], "bound, and nobody is let in"
        address = server.addresses["remoting"]

        def send() -> int:
            client = Client((address.host, address.port))
            with client.socket:
                return client.publish("at-once").code

        assert await asyncio.to_thread(send) == ResponseCode.SUCCESS, "no later time is told"


@pytest.mark.row("R-02")
@pytest.mark.row("STORE-1")
async def test_no_request_meets_a_store_that_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = made(tmp_path)
    seen: dict[str, bool] = {}
    ended: list[bytes] = []

    def close_store(store: Store) -> None:
        seen.update({port: is_open(server, port) for port in PORTS})
        for client in clients:
            client.settimeout(10)
            ended.append(client.recv(1))
        storage.close_store(store)

    monkeypatch.setattr(app, "close_store", close_store)
    async with AsyncExitStack() as resources:
        await server.start(resources)
        addresses = [server.addresses[port] for port in PORTS]
        clients = [
            await asyncio.to_thread(socket.create_connection, (each.host, each.port))
            for each in addresses
        ]
    assert seen == dict.fromkeys(PORTS, False)
    assert ended == [b"", b"", b""], "and those who were connected are not any more"
    for client in clients:
        client.close()


@pytest.mark.row("R-02")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreClosed("the store is closed"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (StoreCorrupt("commitlog/0", 5, "it is torn"), ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_what_a_store_cannot_read_is_reported_by_its_code(
    error: StoreError, code: ResponseCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PullWorld()
    world.put(b"unreadable")

    def pull(*what: object) -> None:
        raise error

    monkeypatch.setattr(world.puller, "pull", pull)
    told = await world.begin(0)
    assert told.result().code == code
    assert told.result().remark
