"""The time budget of a call."""

from __future__ import annotations

import asyncio

from tests.sdk.memorynet import pass_time, virtual

from rockgate.sdk.producer.router import Budget


@virtual
async def test_a_budget_that_was_waited_for_is_used_up() -> None:
    budget = Budget(3.0)
    # A loop runs timers up to its clock's resolution early, with another one that is due.
    asyncio.get_running_loop().call_later(3.0 - 5e-10, lambda: None)
    await pass_time(budget.left_s)
    assert budget.left_s <= 0.0


@virtual
async def test_a_short_budget_is_a_budget() -> None:
    assert Budget(0.0001).left_s > 0.0
