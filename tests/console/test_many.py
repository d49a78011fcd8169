"""Ten thousand topics and a thousand groups: pages of them are painted within a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.cli.two_listeners import BothWires, both_wires
from tests.console.running import RunningConsole, Shell

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]
TOPICS, GROUPS = 10_000, 1_000
ROWS = 50
AT_ONCE = 500
VISITS = 5
PAINT_MS_MAX = 1_000
QUIET_LOAD = 1.5
"""With more to do, the machine is measured and not the console."""
COMMIT = 15
PAINTED = "() => document.querySelectorAll('.rg-grid tbody tr').length"
SINCE_START = "() => performance.now()"


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("many")) as running:
        shell = Shell(running.terminal)
        shell.run("topics", "create", "topic-00000")
        # Before the many topics: meanwhile this connection would be idle for too long.
        for number in range(GROUPS):
            fields = {"consumerGroup": f"group-{number:04d}", "topic": "topic-00000"}
            answer = running.client.ask(COMMIT, {**fields, "queueId": 0, "commitOffset": 0})
            assert answer.code == 0, answer.remark
        for at in range(1, TOPICS, AT_ONCE):
            names = (f"topic-{n:05d}" for n in range(at, min(at + AT_ONCE, TOPICS)))
            shell.run("topics", "create", *names)
        yield running


@pytest.fixture(scope="module")
def console(wires: BothWires, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    with RunningConsole(tmp_path_factory.mktemp("console"), wires.server) as running:
        yield running
        assert "Traceback" not in running.log


@pytest.mark.parametrize(
    ("path", "count"), [("/topics", TOPICS), ("/groups", GROUPS), ("/topics?q=topic-09&page=3", 0)]
)
def test_a_page_of_many_is_painted_within_a_second(
    console: RunningConsole, visitor: Any, path: str, count: int
) -> None:
    """From the begin of the visit to the first rows; the first visit of all warms the browser."""
    took = []
    for _ in range(VISITS + 1):
        visitor.goto(console.url + path, wait_until="commit")
        visitor.wait_for_function(PAINTED)
        took.append(visitor.evaluate(SINCE_START))
    assert visitor.evaluate(PAINTED) <= ROWS
    if count:
        visitor.get_by_text(f"of {count:,} ").wait_for()
    load, middle = os.getloadavg()[0], median(took[1:])
    sys.stdout.write(f"{path}: {middle:.0f} ms, {[round(each) for each in took]}, load {load:g}\n")
    if load <= QUIET_LOAD:
        assert middle <= PAINT_MS_MAX
    else:
        sys.stdout.write(f"not compared with {PAINT_MS_MAX} ms: the load is above {QUIET_LOAD}\n")


def test_a_search_among_many_answers(console: RunningConsole, visitor: Any) -> None:
    visitor.goto(f"{console.url}/cluster")
    visitor.locator('.rg-grid[aria-label="Brokers"]').wait_for()
    visitor.keyboard.press("/")
    visitor.get_by_label("Search topics and groups").fill("group-0999")
    visitor.locator(".rg-search-result", has_text="group-0999").wait_for()


def test_the_overview_has_charts_with_many_topics(
    console: RunningConsole, visitor: Any, tmp_path: Path
) -> None:
    visitor.goto(f"{console.url}/")
    visitor.locator(".rg-tile", has_text="10,0").first.wait_for()
    visitor.locator(".rg-chart canvas").first.wait_for()
