"""Messages whose listeners hang: sent back from the first on, sixteen in a pass at most."""

from __future__ import annotations

import pytest
from tests.sdk.consumer.delivery.test_settlement import QUEUE, HeldQueue

from rockgate.sdk.consumer.delivery.expiry import hangs, send_back_hanging

TIMEOUT_S = 900.0


@pytest.mark.row("PQ-13", "TRAP-13")
@pytest.mark.parametrize(
    ("started_at_s", "is_hanging"), [(None, False), (100.0, False), (99.9, True), (0.0, True)]
)
def test_a_message_hangs_when_it_was_begun_longer_ago_than_it_may_take(
    started_at_s: float | None, is_hanging: bool
) -> None:
    (message,) = HeldQueue(1).messages
    message.started_at_s = started_at_s
    assert hangs(message, 1000.0, TIMEOUT_S) is is_hanging
    assert not hangs(None, 1000.0, TIMEOUT_S)


@pytest.mark.row("TRAP-13")
async def test_a_queue_that_is_empty_and_a_message_that_no_one_began_raise_nothing() -> None:
    empty = HeldQueue()
    assert await send_back_hanging(empty.cached, empty.settlement, 901.0, TIMEOUT_S) == 0
    assert empty.cached.commit() is None
    world = HeldQueue(1)
    assert world.messages[0].started_at_s is None
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 0
    assert world.cached.count == 1


@pytest.mark.row("PQ-13", "U-07")
async def test_sixteen_at_most_are_sent_back_in_a_pass_and_block_no_more() -> None:
    world = HeldQueue(*range(20))
    for message in world.messages:
        message.started_at_s = 0.0
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 16
    assert world.sent_back == [(offset, 3, 16) for offset in range(16)]
    assert world.offsets.get(QUEUE) == 16
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 4


@pytest.mark.row("PQ-13")
async def test_what_follows_one_that_does_not_hang_stays() -> None:
    world = HeldQueue(1, 2)
    world.messages[1].started_at_s = 0.0
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 0
    assert world.sent_back == []


@pytest.mark.row("PQ-13")
async def test_what_no_one_takes_back_stays_and_the_next_pass_tries_again() -> None:
    world = HeldQueue(1)
    world.messages[0].started_at_s = 0.0
    world.takes_back = world.takes_new = False
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 0
    assert world.cached.count == 1
    world.takes_back = True
    assert await send_back_hanging(world.cached, world.settlement, 901.0, TIMEOUT_S) == 1
    assert world.cached.count == 0
