import asyncio
from dataclasses import replace

import pytest
from tests.gateway.kafka.admin import SYNC, Admin
from tests.world import CONFIG

from rockgate.store.errors import DiskFailed, FlushTimeout


def world(flush: str = "sync", timeout_ms: int = 5_000) -> Admin:
    return Admin(replace(SYNC if flush == "sync" else CONFIG, flush_timeout_ms=timeout_ms))


async def test_a_change_is_answered_at_once_where_no_one_asked_for_more() -> None:
    admin = world("async")
    admin.topic()
    assert admin.durability.after_changes("done") == "done"


async def test_under_sync_a_change_is_answered_once_it_is_on_disk() -> None:
    admin = world()
    admin.topic()
    answer = admin.durability.after_changes("done")
    assert isinstance(answer, asyncio.Future) and not answer.done()
    admin.store.flush()
    assert await answer == "done"


async def test_what_is_on_disk_already_waits_for_nothing() -> None:
    admin = world()
    admin.topic()
    admin.store.flush()
    assert admin.durability.after_changes("done") == "done"
    assert admin.durability.after(0, "done") == "done"


async def test_an_answer_waits_for_its_own_position_and_no_further() -> None:
    admin = world()
    admin.topic()
    first = admin.durability.after(admin.store.log.end, 1)
    admin.store.flush()
    admin.topic("more")
    second = admin.durability.after(admin.store.log.end, 2)
    assert isinstance(first, asyncio.Future) and isinstance(second, asyncio.Future)
    assert await first == 1
    assert not second.done()
    admin.store.flush()
    assert await second == 2


async def test_a_flush_that_does_not_come_in_time_is_said() -> None:
    admin = world(timeout_ms=1)
    admin.topic()
    with pytest.raises(FlushTimeout):
        await admin.durability.after_changes("done")  # type: ignore[misc]  # it must wait
    admin.store.flush()


async def test_a_disk_that_failed_is_said() -> None:
    admin = world()
    admin.topic()
    answer = admin.durability.after_changes("done")
    admin.disk.plan = lambda operation: OSError(5, "broken") if operation.kind == "sync" else None
    admin.store.flusher.step()
    with pytest.raises(DiskFailed):
        await answer  # type: ignore[misc]  # it must wait


async def test_a_client_that_is_gone_is_no_trouble_to_the_flush() -> None:
    admin = world()
    admin.topic()
    answer = admin.durability.after_changes("done")
    assert isinstance(answer, asyncio.Future)
    answer.cancel()
    admin.store.flush()
    assert answer.cancelled()


async def test_who_begins_to_wait_in_one_turn_asks_for_one_flush() -> None:
    admin = world()
    waiting = []
    for number in range(3):
        admin.topic(f"topic-{number}")
        waiting.append(admin.durability.after_changes(number))
    assert admin.store.flusher.waiting_count == 0, "asked when the turn is over"
    await asyncio.sleep(0)
    assert admin.store.flusher.waiting_count == 1
    admin.store.flush()
    assert await asyncio.gather(*waiting) == [0, 1, 2]  # type: ignore[arg-type]  # all must wait
