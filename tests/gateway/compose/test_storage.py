import asyncio
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.compose.storage import (
    BUSY_SECONDS,
    FAILED_SECONDS,
    IDLE_SECONDS,
    Ticking,
    close_store,
    open_store,
    posting,
)
from rockgate.gateway.runtime.errors import StartError
from rockgate.store.config import StoreConfig

SMALL = StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 16)


async def test_a_store_is_opened_without_stopping_the_loop(tmp_path: Path) -> None:
    opening = asyncio.ensure_future(open_store(tmp_path / "data", SMALL))
    await asyncio.sleep(0)
    assert not opening.done()
    store = await opening
    store.start(posting(asyncio.get_running_loop()))
    store.close()


async def test_what_is_posted_by_any_thread_runs_on_the_loop_in_its_next_turn() -> None:
    loop = asyncio.get_running_loop()
    post = posting(loop)
    ran: list[int] = []
    both = asyncio.Event()

    def run() -> None:
        ran.append(threading.get_ident())
        if len(ran) == 2:
            both.set()

    post(run)
    assert not ran
    await asyncio.to_thread(post, run)
    await asyncio.wait_for(both.wait(), 60)
    assert ran == [threading.get_ident()] * 2


def test_what_is_posted_after_the_loops_end_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    post = posting(loop)
    loop.close()
    ran: list[int] = []
    post(lambda: ran.append(1))
    thread = threading.Thread(target=post, args=(lambda: ran.append(2),))
    thread.start()
    thread.join()
    assert not ran


async def test_a_directory_in_use_is_a_reason_not_to_start(tmp_path: Path) -> None:
    store = await open_store(tmp_path, SMALL)
    with pytest.raises(StartError, match=f"Cannot open the store in {tmp_path}.*in use"):
        await open_store(tmp_path, SMALL)
    store.close()


async def test_a_damaged_log_is_a_reason_not_to_start_and_comes_with_advice(tmp_path: Path) -> None:
    (await open_store(tmp_path, SMALL)).close()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    with pytest.raises(
        StartError, match=r"is damaged .*\. To find a repair, run `rockgate log check`\."
    ):
        await open_store(tmp_path, SMALL)


async def test_a_directory_that_cannot_be_made_is_a_reason_not_to_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=r"Cannot open the store in .*Not a directory"):
        await open_store(tmp_path / "file" / "data", SMALL)


async def test_a_store_that_closes_says_how_often_it_fsynced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store = await open_store(tmp_path, SMALL)
    close_store(store)
    count = store.flusher.fsync_count
    assert caplog.messages[-1] == f"closed end={store.log.end} fsyncs={count}"


def test_ticks_come_soon_while_there_is_work_and_continue_after_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = HandClock()
    at: list[float] = []
    outcomes = [True, True, False, None, False]

    def tick() -> bool:
        at.append(clock.now)
        outcome = outcomes.pop(0)
        if outcome is None:
            raise OSError("no room")
        return outcome

    ticking = Ticking(tick, clock)
    clock.advance(IDLE_SECONDS * 2 + BUSY_SECONDS * 2 + FAILED_SECONDS + 0.01)
    waits = [round(later - earlier, 6) for earlier, later in pairwise(at)]
    assert waits == [BUSY_SECONDS, BUSY_SECONDS, IDLE_SECONDS, FAILED_SECONDS]
    assert "store tick failed" in caplog.text
    ticking.stop()
    assert clock.timers == []
