import asyncio
from collections.abc import Iterator

import pytest

from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.telemetry import SLICE_SECONDS, Telemetry


class Slow:
    """A source of many steps, each of which takes a millisecond."""

    def __init__(self, steps: int) -> None:
        self.now = 0.0
        self.steps = steps
        self.calls = 0

    def __call__(self, page: Exposition) -> Iterator[None]:
        self.calls += 1
        for _ in range(self.steps):
            self.now += 0.001
            yield
        page.add(metrics.TOPICS, self.steps)


def partitions(page: Exposition) -> Iterator[None]:
    page.add(metrics.PARTITIONS, 7)
    yield


async def test_a_page_has_what_every_source_tells() -> None:
    telemetry = Telemetry()
    telemetry.sources += [Slow(0), partitions]
    page = await telemetry.page()
    assert "rockgate_topics 0\n" in page
    assert "rockgate_partitions 7\n" in page
    assert "rockgate_scrape_seconds" in page


async def test_others_get_their_turn_while_a_page_is_made() -> None:
    source = Slow(100)
    telemetry = Telemetry(now=lambda: source.now)
    telemetry.sources.append(source)
    turns = 0
    task = asyncio.ensure_future(telemetry.page())
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 100 * 0.001 / SLICE_SECONDS / 2
    assert "rockgate_topics 100" in task.result()


async def test_those_who_ask_at_the_same_time_share_a_page() -> None:
    source = Slow(50)
    telemetry = Telemetry(now=lambda: source.now)
    telemetry.sources.append(source)
    first = asyncio.ensure_future(telemetry.page())
    second = asyncio.ensure_future(telemetry.page())
    await asyncio.sleep(0)
    # One who gives up does not take the page from the other.
    first.cancel()
    assert "rockgate_topics 50" in await second
    assert source.calls == 1
    await telemetry.page()
    assert source.calls == 2


async def test_a_source_that_fails_fails_this_page_and_not_the_next() -> None:
    telemetry = Telemetry()

    def broken(page: Exposition) -> Iterator[None]:
        raise ValueError("no")
        yield

    telemetry.sources.append(broken)
    with pytest.raises(ValueError, match="no"):
        await telemetry.page()
    telemetry.sources.clear()
    assert "rockgate_scrape_seconds" in await telemetry.page()
