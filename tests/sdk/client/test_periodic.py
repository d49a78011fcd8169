"""Periodic work: docs/reference/sdk.md, "The client"."""

from __future__ import annotations

import asyncio

import pytest
from tests.sdk.memorynet import now, pass_time, run

from rockgate.sdk.client.periodic import Upkeep


@pytest.mark.row("CI-5")
def test_upkeep_starts_once_can_be_woken_early_and_stops_when_told() -> None:
    async def scenario() -> None:
        times: list[float] = []
        began_s = now()

        async def step() -> None:
            times.append(round(now() - began_s, 1))

        upkeep = Upkeep(30.0, {"step": step})
        assert not upkeep.is_started
        before = len(asyncio.all_tasks())
        upkeep.start()
        upkeep.start()
        assert len(asyncio.all_tasks()) == before + 1
        await pass_time(35)
        assert times == [30.0]
        upkeep.wake()
        await pass_time(1)
        assert times == [30.0, 35.0]
        await pass_time(30)
        # The next one is a period after the one that was asked for.
        assert times == [30.0, 35.0, 65.0]
        await upkeep.close()
        upkeep.wake()
        await pass_time(100)
        assert times == [30.0, 35.0, 65.0]
        assert len(asyncio.all_tasks()) == before

    run(scenario())
