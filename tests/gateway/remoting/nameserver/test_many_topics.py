"""A broker that registers with very many topics holds up neither the loop nor another thread."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.remoting.test_nameserver import route, somebody, table

from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.processors import SLICE_COUNT, NameServerRequests
from rockgate.gateway.remoting.nameserver.routes import Routes
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.nameserver import RegisterBody
from rockgate.protocol.remoting.bodies.registration import (
    AT_ONCE_BYTES,
    WHAT,
    decode_registration,
)
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.store.clock import ManualClock

COUNT = 5 * SLICE_COUNT
NAMES = [f"orders-{number}" for number in range(COUNT)]
BROKER = {
    "brokerName": "broker-a",
    "brokerAddr": "10.0.0.1:10911",
    "clusterName": "cluster",
    "haServerAddr": "",
    "brokerId": "0",
}


def registration(names: list[str]) -> bytes:
    return javajson.encode(RegisterBody(topic_config_serialize_wrapper=table(*names)))


class Registering:
    """One name server, and brokers that register with it."""

    def __init__(self, folder: Path) -> None:
        self.routes = Routes(None, 1_000)
        self._requests = NameServerRequests(
            routes=self.routes, kv=KeyValues(folder), clock=ManualClock()
        )
        self.caller: Any = somebody()

    async def register(self, names: list[str]) -> Command:
        command = Command(RequestCode.REGISTER_BROKER, BROKER, body=registration(names))
        answer: Any = self._requests.register(command, self.caller)
        found: Command = await answer
        return found

    def known(self) -> int:
        return sum(bool(route(self.routes, name)) for name in NAMES[::SLICE_COUNT])


def test_a_large_table_is_read_as_a_small_one_is() -> None:
    data = registration(NAMES)
    assert len(data) > AT_ONCE_BYTES
    whole = javajson.decode(data, RegisterBody, WHAT)
    assert decode_registration(data, is_compressed=False) == whole


def test_a_large_table_with_a_wrong_topic_is_refused() -> None:
    data = registration(NAMES).replace(b'"perm":6', b'"perm":"?"', 1)
    with pytest.raises(MalformedRequest, match=WHAT):
        decode_registration(data, is_compressed=False)


async def test_topics_are_taken_in_over_many_turns(tmp_path: Path) -> None:
    registering = Registering(tmp_path)
    seen: set[int] = set()
    task = asyncio.create_task(registering.register(NAMES))
    while not task.done():
        seen.add(registering.known())
        await asyncio.sleep(0)
    assert (await task).code == ResponseCode.SUCCESS
    assert registering.known() == COUNT // SLICE_COUNT
    assert len(seen) > 3, "between them others had their turn"


async def test_a_broker_that_is_lost_meanwhile_leaves_no_route(tmp_path: Path) -> None:
    registering = Registering(tmp_path)
    task = asyncio.create_task(registering.register(NAMES))
    while not registering.known():  # noqa: ASYNC110 # it is turns that count
        await asyncio.sleep(0)
    registering.routes.lost(registering.caller)
    await task
    assert registering.known() == 0


async def test_of_two_registrations_at_once_the_later_is_what_is_known(tmp_path: Path) -> None:
    registering = Registering(tmp_path)
    fewer = NAMES[: COUNT // 2]
    first = asyncio.create_task(registering.register(fewer))
    await asyncio.gather(first, registering.register(NAMES))
    assert registering.known() == COUNT // SLICE_COUNT
