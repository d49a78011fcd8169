import asyncio

import pytest
from tests.waiting import until

from rockgate.gateway.durability import when_flushed
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import FlushTimeout
from rockgate.store.flush import Flusher


def flusher_of(end: int, flushed: int = 0) -> Flusher:
    return Flusher(
        sync=lambda start, end: None,
        end=lambda: end,
        clock=ManualClock(),
        config=StoreConfig(),
        flushed=flushed,
    )


async def test_an_answer_is_given_when_its_position_is_on_disk() -> None:
    flusher = flusher_of(100)
    future = when_flushed(flusher, 100, "answer", seconds_max=60)
    assert not future.done()
    flusher.step()
    flusher.settle()
    assert await future == "answer"


async def test_what_is_on_disk_already_is_answered_at_once() -> None:
    assert when_flushed(flusher_of(100, 100), 100, "answer", seconds_max=60).done()


async def test_a_disk_that_fails_is_told_and_so_is_one_that_takes_too_long() -> None:
    flusher = flusher_of(100)
    failed = when_flushed(flusher, 100, "answer", seconds_max=60)
    late = when_flushed(flusher_of(100), 100, "answer", seconds_max=0)
    flusher.failure = OSError("gone")
    flusher.settle()
    await until(late.done, "the time is up")
    for future in (failed, late):
        with pytest.raises(FlushTimeout, match="position 100 was not flushed in time"):
            future.result()


async def test_one_who_has_gone_is_not_told() -> None:
    flusher = flusher_of(100)
    future = when_flushed(flusher, 100, "answer", seconds_max=60)
    future.cancel()
    flusher.step()
    flusher.settle()
    await asyncio.sleep(0)
    assert future.cancelled()
