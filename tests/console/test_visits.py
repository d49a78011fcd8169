"""What every visitor meets: hostile messages, dead servers, small screens, named controls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.two_listeners import BothWires, both_wires
from tests.console.accessibility import faint, lost_focus, nameless
from tests.console.running import RunningConsole, Shell

HOSTILE = (
    "<img src=x onerror=window.pwned=1>",
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}`;window.pwned=1;//",
    '"><svg onload=window.pwned=1>',
    "javascript:window.pwned=1",
    "\u202e\u0000\x1b[2J",
)
PATHS = (
    "/",
    "/topics",
    "/topics/evil",
    "/messages?topic=evil",
    "/messages/evil/0/0",
    "/produce",
    "/groups",
    "/groups/evil",
    "/delayed",
    "/transactions",
    "/dead-letters",
    "/clients",
    "/security",
    "/cluster",
    "/log",
)


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("visited")) as running:
        terminal = Shell(running.terminal)
        terminal.run("topics", "create", "evil", "-p", "1")
        lines = [
            json.dumps(
                {
                    "key": each,
                    "value": each,
                    "headers": [{"key": each.replace("\u0000", ""), "value": each}],
                }
            )
            for each in HOSTILE
        ]
        lines.append(json.dumps({"value": json.dumps({each: each for each in HOSTILE})}))
        terminal.pipe("produce", "evil", "--jsonl", data="\n".join(lines).encode() + b"\n")
        for group in ("evil", HOSTILE[0]):
            arguments = ("groups", "reset-offsets", group, "--topic", "evil", "--to-earliest")
            terminal.run(*arguments, "--execute")
        yield running


@pytest.fixture(scope="module")
def console(wires: BothWires, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    with RunningConsole(tmp_path_factory.mktemp("console"), wires.server) as running:
        yield running
        assert "Traceback" not in running.log


def settle(page: Any) -> None:
    """Wait until nothing on a page is still to be loaded for the first time."""
    page.wait_for_function(
        "() => document.querySelector('.rg-title') && !document.querySelector('.q-skeleton')"
    )


def test_contents_of_messages_are_text_and_nothing_else(
    console: RunningConsole, visitor: Any
) -> None:
    places = ["/messages?topic=evil", "/groups", "/topics/evil"]
    places += [f"/messages/evil/0/{offset}" for offset in range(len(HOSTILE) + 1)]
    for path in places:
        visitor.goto(console.url + path)
        settle(visitor)
        if path.startswith("/messages?"):
            visitor.get_by_text(f"{len(HOSTILE) + 1} shown").wait_for()
        assert visitor.evaluate("() => window.pwned") is None, path
        assert (
            visitor.locator(
                "[onerror], [onload], main img, .rg-page img, .rg-page svg script"
            ).count()
            == 0
        )
    visitor.goto(f"{console.url}/messages/evil/0/0")
    visitor.locator("pre", has_text=HOSTILE[0]).wait_for()
    visitor.goto(f"{console.url}/messages/evil/0/3")
    visitor.locator("pre", has_text=HOSTILE[3]).wait_for()


def test_every_page_fits_a_small_screen_and_names_its_controls(
    console: RunningConsole, visitor: Any
) -> None:
    assert visitor.context.browser is not None
    for width in (1280, 390):
        visitor.set_viewport_size({"width": width, "height": 844})
        for path in PATHS:
            visitor.goto(console.url + path)
            settle(visitor)
            wide = visitor.evaluate("() => document.scrollingElement.scrollWidth")
            assert wide <= width, (path, wide)
            assert nameless(visitor) == [], path
            assert visitor.locator("h1, [role=heading][aria-level='1']").count() == 1
    assert visitor.locator("html").get_attribute("lang") == "en-US"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(console: RunningConsole, chromium: Any, scheme: str) -> None:
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    for path in PATHS:
        page.goto(console.url + path)
        settle(page)
        assert faint(page) == [], path
    context.close()


def test_the_tab_key_shows_where_it_is(console: RunningConsole, visitor: Any) -> None:
    for path in ("/messages?topic=evil", "/topics", "/delayed"):
        visitor.goto(console.url + path)
        settle(visitor)
        assert lost_focus(visitor) == [], path


def test_a_read_only_console_offers_no_change(
    wires: BothWires, visitor: Any, tmp_path: Path
) -> None:
    with RunningConsole(tmp_path, wires.server, "--read-only") as console:
        for path in ("/topics", "/topics/evil", "/groups/evil", "/security", "/produce"):
            visitor.goto(console.url + path)
            settle(visitor)
            for word in ("Create", "Delete", "Reset", "Change", "Add", "Send", "Resend"):
                assert visitor.get_by_role("button", name=word).count() == 0, (path, word)
        visitor.get_by_text("The console is read-only.").wait_for()


def test_masked_fields_are_not_on_the_page(wires: BothWires, visitor: Any, tmp_path: Path) -> None:
    Shell(wires.terminal).run("topics", "create", "cards")
    line = json.dumps({"value": json.dumps({"card": "4111-1111", "name": "Ann"})}).encode()
    wires.terminal.pipe("produce", "cards", "--jsonl", data=line + b"\n")
    with RunningConsole(tmp_path, wires.server, "--mask", "car*:card") as console:
        for path in ("/messages?topic=cards", "/messages/cards/0/0"):
            visitor.goto(console.url + path)
            visitor.get_by_text("Ann").first.wait_for()
            assert "4111" not in visitor.content()


def test_a_page_says_that_a_server_is_away_and_comes_back(
    visitor: Any, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with both_wires(tmp_path_factory.mktemp("away")) as wires:
        Shell(wires.terminal).run("topics", "create", "there")
        flags = ("--timeout", "2s")
        with RunningConsole(tmp_path, wires.server, *flags) as console:
            visitor.goto(f"{console.url}/topics")
            visitor.get_by_role("link", name="there").wait_for()
            wires.server.stop()
            visitor.get_by_role("alert").filter(has_text="Trying again").wait_for()
            assert visitor.get_by_role("link", name="there").count() == 1
            visitor.goto(f"{console.url}/cluster")
            visitor.get_by_role("alert").filter(has_text="Trying again").wait_for()
            wires.server.restart()
            visitor.locator('.rg-grid[aria-label="Brokers"]').wait_for()
            assert "Traceback" not in console.log


def test_any_kafka_server_has_the_pages_that_it_can_fill(
    wires: BothWires, visitor: Any, tmp_path: Path
) -> None:
    flags = ("--broker", "127.0.0.1:1", "--metrics", "off", "--timeout", "3s")
    with RunningConsole(tmp_path, wires.server, *flags) as console:
        visitor.goto(f"{console.url}/topics")
        visitor.get_by_role("link", name="evil").wait_for()
        navigation = visitor.locator("nav")
        navigation.get_by_text("Delayed").wait_for(state="hidden")
        navigation.get_by_text("Dead letters").wait_for(state="hidden")
        visitor.goto(f"{console.url}/")
        visitor.get_by_text("Charts need metrics").wait_for()
        visitor.locator(".rg-tile", has_text="Topics").wait_for()
        visitor.goto(f"{console.url}/groups/evil")
        visitor.locator('.rg-grid[aria-label="Lag"]').wait_for()
        visitor.goto(f"{console.url}/transactions")
        visitor.get_by_text("Kafka's transactions that are open").wait_for()
        assert "Traceback" not in console.log


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("{own}", "http://{own}", 101),
        ("{own}", "http://evil.example", 403),
        ("{own}", "", 403),
        ("evil.example", "http://evil.example", 403),
    ],
)
def test_only_the_console_s_own_pages_open_its_websocket(
    console: RunningConsole, host: str, origin: str, status: int
) -> None:
    own = urlsplit(console.url).netloc
    headers = {
        "Host": host.format(own=own),
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    if origin:
        headers["Origin"] = origin.format(own=own)
    connection = HTTPConnection(own, timeout=60)
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    connection.request("GET", path, headers=headers)
    try:
        assert connection.getresponse().status == status
    finally:
        connection.close()


def test_every_answer_of_the_process_forbids_frames(console: RunningConsole) -> None:
    connection = HTTPConnection(urlsplit(console.url).netloc, timeout=60)
    for path in ("/", "/login", "/console.css", "/nothing"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.getheader("X-Frame-Options") == "DENY", path
        assert "frame-ancestors 'none'" in (answer.getheader("Content-Security-Policy") or "")
    connection.close()
