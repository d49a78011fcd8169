"""Produce while the store is stalled: held in order, never failed, and throttled afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.kafka.request.errors import code_of, coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.server.held_produce import STEP_COUNT, HeldProduce
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.stream import Disconnect
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreBusy

HERE = Address("127.0.0.1", 9092)


class Producing:
    """A handler whose requests are numbers, and what stands in for it."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.handled: list[int] = []
        self.swaps: list[bool] = []
        self.seconds: list[float] = []
        self.held = HeldProduce(cast(Any, self), self.clock, self.swaps.append, self.seconds.append)
        self.has_left = False

    def handle(self, request: int, call: Call) -> str:
        self.handled.append(request)
        return f"stored {request}"

    def refuse(self, request: int, code: ErrorCode) -> str:
        return code.name

    def call(self) -> Call:
        peer = Peer(connection_id=1, local=HERE, remote=HERE, has_left=lambda: self.has_left)
        return Call(9, "client", peer)

    def ask(self, request: int, call: Call | None = None) -> asyncio.Future[Any]:
        answer = self.held.handle(request, call or self.call())
        return asyncio.ensure_future(cast(Awaitable[Any], answer))


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_held_is_handled_in_order_once_the_store_continues() -> None:
    world = Producing()
    world.held.stalled(True)
    asked = [world.ask(number) for number in range(STEP_COUNT + 1)]
    await turns()
    world.clock.advance(0.3)
    assert world.handled == []
    world.held.stalled(False)
    await turns()
    assert world.handled == list(range(STEP_COUNT))
    assert world.swaps == [True], "others wait behind the last one"
    world.clock.advance(0)
    assert await asyncio.gather(*asked) == [f"stored {n}" for n in range(STEP_COUNT + 1)]
    assert world.swaps == [True, False]
    assert not world.clock.timers


async def test_nothing_behind_a_held_request_is_started_on_its_connection() -> None:
    world, call = Producing(), Producing().call()
    world.held.stalled(True)
    asked = world.ask(1, call)
    await turns()
    assert call.peer.reading_count == 1
    world.held.stalled(False)
    await asked
    assert call.peer.reading_count == 0


@pytest.mark.parametrize(("held_s", "throttle_ms"), [(0.25, 250), (90.0, 1_000)])
async def test_the_client_is_told_to_wait_as_long_as_it_was_held_but_a_second_at_most(
    held_s: float, throttle_ms: int
) -> None:
    world, call = Producing(), Producing().call()
    world.held.stalled(True)
    asked = world.ask(1, call)
    await turns()
    world.clock.advance(held_s)
    world.held.stalled(False)
    await asked
    assert call.peer.throttle_ms == throttle_ms
    assert world.seconds == [held_s]


async def test_a_request_whose_client_has_left_is_not_handled() -> None:
    """It has given up, and an append now would be one more than it knows of."""
    world = Producing()
    world.held.stalled(True)
    asked = world.ask(1)
    await turns()
    world.has_left = True
    world.held.stalled(False)
    with pytest.raises(Disconnect):
        await asked
    assert world.handled == []


async def test_clients_of_held_requests_are_looked_after_once_a_second() -> None:
    world, looks = Producing(), []

    def has_left() -> bool:
        looks.append(1)
        return False

    world.held.stalled(True)
    call = world.call()
    call.peer.has_left = has_left
    asked = world.ask(1, call)
    await turns()
    world.clock.advance(3)
    assert len(looks) == 3
    asked.cancel()
    await turns()
    world.clock.advance(3)
    assert len(looks) == 3, "nobody is looked after any more"
    world.held.stop()


async def test_a_second_stall_holds_what_had_its_turn_coming() -> None:
    world = Producing()
    world.held.stalled(True)
    asked = [world.ask(number) for number in range(STEP_COUNT + 1)]
    await turns()
    world.held.stalled(False)
    world.held.stalled(True)
    world.clock.advance(0.5)
    await turns()
    assert len(world.handled) == STEP_COUNT
    world.held.stalled(False)
    await asyncio.gather(*asked)
    assert world.swaps == [True, False]


async def test_an_error_of_the_handler_is_the_handlers_to_answer() -> None:
    world = Producing()
    assert world.held.refuse(1, ErrorCode.KAFKA_STORAGE_ERROR) == "KAFKA_STORAGE_ERROR"


@pytest.mark.row("D-13")
def test_where_busy_becomes_an_error_kafka_clients_try_again() -> None:
    """A commit, or a batch that no longer fits into the segment."""
    code = code_of(StoreBusy("The disk is slow."))
    assert code is not None
    assert code.retriable
    assert coordinator_code(code).retriable
