"""When rounds of assignment come."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.waiting import until

from rockgate.sdk.consumer.queues.rounds import GAP_S, Rounds


@pytest.mark.row("REB-2")
async def test_of_many_notices_the_first_makes_a_round_at_once_and_the_rest_one_together() -> None:
    rounds = Rounds("g", 600.0)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def one() -> bool:
        times.append(loop.time())
        return True

    running = asyncio.create_task(rounds.run(one, is_complete=True))
    began_s = loop.time()
    for _ in range(20):
        rounds.wake()
        await asyncio.sleep(0)
    assert len(times) == 1
    await until(lambda: len(times) == 2, "the round that was asked for meanwhile")
    assert times[1] - times[0] >= GAP_S * 0.9
    await until(lambda: loop.time() - began_s > 3 * GAP_S, "what follows")
    assert len(times) == 2
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
