"""Every step of a server's upkeep made to fail: told, counted, tried again, no other notices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from tests.gateway.test_failed_disk import STEPS

from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.net.address import Address
from rockgate.store.clock import ManualClock
from rockgate.store.errors import StoreFull
from rockgate.store.upkeep.steps import PAUSE_MS, Steps


class Watched:
    """A real step that is counted, and that fails as often as a test says."""

    def __init__(self, step: Callable[[], bool]) -> None:
        self._step = step
        self.count = 0
        self.failures: list[Exception] = []

    def __call__(self) -> bool:
        self.count += 1
        if self.failures:
            raise self.failures.pop()
        return self._step()


class Upkeep:
    """A real server, whose rounds of upkeep a test takes by hand, at times it sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.watched: dict[str, Watched] = {}
        self.rounds: list[Steps] = []
        real = Steps.add

        def add(
            steps: Steps, name: str, step: Callable[[], bool], *, appends: bool = False
        ) -> None:
            if steps not in self.rounds:
                self.rounds.append(steps)
                steps._monotonic_ms = self.clock.monotonic_ms
            assert name not in self.watched, "a name is one step in logs and metrics"
            self.watched[name] = Watched(step)
            real(steps, name, self.watched[name], appends=appends)

        monkeypatch.setattr(Steps, "add", add)

    def run(self) -> set[str]:
        """Take one round; who had a turn."""
        before = {name: each.count for name, each in self.watched.items()}
        for steps in self.rounds:
            steps.run()
        return {name for name, each in self.watched.items() if each.count > before[name]}

    def failures(self) -> dict[str, int]:
        return {name: count for steps in self.rounds for name, count in steps.failures()}


async def page(server: Server) -> str:
    address = server.addresses["http"]
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
    data = await reader.read()
    writer.close()
    return data.decode()


@pytest_asyncio.fixture
async def started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Upkeep, Server]]:
    upkeep = Upkeep(monkeypatch)
    config = gather().config
    free = Address.parse("127.0.0.1:0")
    config = replace(
        config,
        server=replace(config.server, data_dir=tmp_path),
        store=replace(config.store, segment_bytes=1 << 20),
        **{
            listener: replace(getattr(config, listener), listen=free)
            for listener in ("kafka", "remoting", "namesrv", "http")
        },
    )
    async with AsyncExitStack() as resources:
        server = Server(config)
        await server.start(resources)
        yield upkeep, server


async def test_each_step_that_is_registered_may_fail_once_and_twice_and_starves_no_other(
    started: tuple[Upkeep, Server], caplog: pytest.LogCaptureFixture
) -> None:
    upkeep, server = started
    caplog.set_level(logging.INFO)
    assert set(upkeep.watched) == set(STEPS)
    for name, step in upkeep.watched.items():
        for errors in ([StoreFull("no room")], [OSError("bad"), ZeroDivisionError("a bug")]):
            others = set(STEPS) - {name}
            caplog.clear()
            before = upkeep.failures()[name]
            step.failures = list(errors)
            for number in range(len(errors)):
                assert upkeep.run() == set(STEPS), "it is tried, and so are the others"
                upkeep.clock.advance((PAUSE_MS << number) - 1)
                assert upkeep.run() == others, "it is left alone for a while"
                upkeep.clock.advance(1)
            told = [each for each in caplog.messages if each.startswith("upkeep failed")]
            assert len(told) == 1 and f"step={name} failures=1: {errors[-1]}" in told[0]
            assert upkeep.failures()[name] == before + len(errors)
            assert upkeep.run() == set(STEPS), "and then it does its work again"
            assert f"upkeep recovered step={name} failures={len(errors)}" in caplog.messages
            assert upkeep.run() == set(STEPS)
    metrics = await page(server)
    for name in STEPS:
        assert f'rockgate_upkeep_failures_total{{step="{name}"}} 3' in metrics
    assert 'rockgate_upkeep_failures_total{step="deliveries"} 0' in metrics


async def test_each_step_that_fails_forever_is_reported_once_a_minute_while_the_others_continue(
    started: tuple[Upkeep, Server], caplog: pytest.LogCaptureFixture
) -> None:
    upkeep, _ = started
    for name, step in upkeep.watched.items():
        caplog.clear()
        step.failures = [StoreFull("no room")] * 1_000
        counts = {each: other.count for each, other in upkeep.watched.items()}
        for _ in range(59):
            upkeep.run()
            upkeep.clock.advance(PAUSE_MS)
        assert [each for each in caplog.messages if "upkeep failed" in each] == [
            f"upkeep failed step={name} failures=1: no room"
        ]
        for each, other in upkeep.watched.items():
            ran = other.count - counts[each]
            assert ran == 59 if each != name else 4 < ran < 8
        step.failures = []
        upkeep.clock.advance(60 * PAUSE_MS)
        upkeep.run()
