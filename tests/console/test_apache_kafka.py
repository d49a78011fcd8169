"""The console before a real Apache Kafka: what it can fill is there, and the rest is absent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from bench.peers.kafka import KafkaPeer
from tests.bench.peers.brought import brought
from tests.console.running import RunningConsole

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(900)]
SETTLED = "() => document.querySelector('.rg-title') && !document.querySelector('.q-skeleton')"


class Served:
    """Kafka's listener; nothing listens for RocketMQ's clients or metrics."""

    def __init__(self, peer: KafkaPeer) -> None:
        self.bootstrap = peer.bootstrap

    def address(self, _listener: str) -> tuple[str, int]:
        """A port without a listener."""
        return "127.0.0.1", 1


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    flags = ("--metrics", "off", "--timeout", "5s")
    with (
        brought("kafka"),
        KafkaPeer(heap="512m") as peer,
        RunningConsole(tmp_path_factory.mktemp("console"), Served(peer), *flags) as running,
    ):
        yield running
        assert "Traceback" not in running.log


def visit(page: Any, console: RunningConsole, path: str) -> None:
    page.goto(console.url + path)
    page.wait_for_function(SETTLED)


def test_topics_messages_and_configs(console: RunningConsole, visitor: Any) -> None:
    visit(visitor, console, "/topics")
    visitor.get_by_role("button", name="Create topic").click()
    visitor.locator(".q-dialog").get_by_label("Name", exact=True).fill("shop")
    visitor.locator(".q-dialog").get_by_label("Partitions", exact=True).fill("2")
    visitor.locator(".q-dialog").get_by_role("button", name="Create", exact=True).click()
    visitor.wait_for_url("**/topics/shop")
    visitor.locator('.rg-grid[aria-label="Partitions"] tbody tr').nth(1).wait_for()

    visit(visitor, console, "/produce?topic=shop")
    visitor.get_by_label("Key", exact=True).fill("k-1")
    visitor.get_by_label("Value", exact=True).fill('{"price": 12}')
    visitor.get_by_role("button", name="Send").click()
    visitor.get_by_text(re.compile("Sent to shop")).first.wait_for()

    visit(visitor, console, "/messages?topic=shop&sql=price%20%3E%2010")
    found = visitor.locator('.rg-grid[aria-label="Messages"] tbody tr', has_text="12").first
    found.get_by_role("link").first.click()
    visitor.locator("pre", has_text="price").wait_for()

    visit(visitor, console, "/topics/shop")
    visitor.get_by_role("button", name="Change a config").click()
    visitor.get_by_label("Config", exact=True).fill("retention.ms")
    visitor.get_by_role("option", name="retention.ms", exact=True).click()
    visitor.locator(".q-dialog").get_by_label("Value", exact=True).fill("1234567")
    visitor.locator(".q-dialog").get_by_role("button", name="Set", exact=True).click()
    visitor.get_by_text("1234567").first.wait_for()


def test_pages_of_what_only_rockgate_has_are_absent(console: RunningConsole, visitor: Any) -> None:
    visit(visitor, console, "/")
    navigation = visitor.locator("nav")
    for name in ("Delayed", "Dead letters"):
        navigation.get_by_text(name, exact=True).wait_for(state="hidden")
    for name in ("Topics", "Groups", "Transactions", "Clients", "Security", "Cluster"):
        assert navigation.get_by_text(name, exact=True).is_visible(), name


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/groups", "/transactions", "/clients", "/cluster", "/log"]
)
def test_every_other_page_is_filled(console: RunningConsole, visitor: Any, path: str) -> None:
    visit(visitor, console, path)
    visitor.locator(".rg-problem").first.wait_for(state="hidden")
    assert visitor.locator(".rg-grid, .rg-tile, .rg-quiet").count() > 0


def test_security_says_that_none_is_configured(console: RunningConsole, visitor: Any) -> None:
    visit(visitor, console, "/security")
    visitor.get_by_text("The server has no authorizer").wait_for()


def test_quotas_and_hanging_transactions(console: RunningConsole, visitor: Any) -> None:
    visit(visitor, console, "/clients")
    visitor.get_by_role("button", name="Change quotas").click()
    visitor.locator(".q-dialog").get_by_label("Client id", exact=True).fill("loader")
    visitor.get_by_label("Consumed bytes a second").fill("2048")
    visitor.locator(".q-dialog").get_by_role("button", name="Set", exact=True).click()
    visitor.get_by_text("consumer_byte_rate=2,048").wait_for()
    visit(visitor, console, "/transactions")
    visitor.get_by_role("button", name="Find hanging transactions").click()
    visitor.get_by_text("No hanging transactions found.").wait_for()
