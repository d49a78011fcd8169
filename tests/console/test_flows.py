"""What people do with the console, clicked in a real browser against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.cli.two_listeners import BothWires, both_wires
from tests.console.running import RunningConsole, Shell
from tests.gateway.remoting.client import messages
from tests.gateway.server import environment
from tests.waiting import wait_until

SEND_BACK = 36
PREPARED = 4
DEAD_AT_ONCE = -1
LONG_MS = 120_000
_numbers = count()


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("console-server")) as running:
        yield running


@pytest.fixture(scope="module")
def console(wires: BothWires, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    with RunningConsole(tmp_path_factory.mktemp("console"), wires.server) as running:
        yield running
        assert "Traceback" not in running.log


@pytest.fixture
def name() -> str:
    return f"flow-{next(_numbers)}"


def row(page: Any, table: str, text: str) -> Any:
    """The row of a table that has this text."""
    grid = page.locator(f'.rg-grid[aria-label="{table}"]')
    return grid.locator("tbody tr", has_text=text).first


def dialog_button(page: Any, name: str) -> Any:
    return page.locator(".q-dialog").get_by_role("button", name=name, exact=True)


def test_a_topic_is_created_and_a_delayed_message_arrives(
    console: RunningConsole, visitor: Any, name: str
) -> None:
    visitor.goto(f"{console.url}/topics")
    visitor.get_by_role("button", name="Create topic").click()
    visitor.locator(".q-dialog").get_by_label("Name", exact=True).fill(name)
    visitor.locator(".q-dialog").get_by_label("Partitions", exact=True).fill("2")
    visitor.locator(".q-dialog").get_by_label("Configs").fill("message.type=DELAY")
    dialog_button(visitor, "Create").click()
    visitor.wait_for_url(f"**/topics/{name}")
    row(visitor, "Partitions", "1").wait_for()

    tail = visitor.context.new_page()
    tail.goto(f"{console.url}/messages?topic={name}&mode=tail")
    tail.get_by_text("0 shown of 0 read.").wait_for()

    waiting = visitor.context.new_page()
    waiting.goto(f"{console.url}/delayed?topic={name}")
    waiting.get_by_text("No delayed messages.").wait_for()
    visitor.goto(f"{console.url}/produce?topic={name}")
    visitor.get_by_label("Key", exact=True).fill("k-1")
    visitor.get_by_label("Deliver after").fill("20s")
    visitor.get_by_label("Value", exact=True).fill('{"price": 12}')
    visitor.get_by_role("button", name="Send").click()
    visitor.get_by_text(re.compile(f"Sent to {name}")).first.wait_for()
    row(waiting, "The next delayed messages", name).wait_for()

    row(tail, "Messages", '{ "price": 12 }').wait_for(timeout=LONG_MS)


def test_a_dead_letter_is_resent_and_consumed(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    group = f"g-{name}"
    assert wires.client.publish(name, b"again", queue=1).code == 0
    (message,) = messages(wires.client.pull(name, queue=1))
    fields = {
        "offset": message.position,
        "group": group,
        "delayLevel": DEAD_AT_ONCE,
        "originTopic": name,
    }
    assert wires.client.ask(SEND_BACK, fields).code == 0

    visitor.goto(f"{console.url}/dead-letters")
    row(visitor, "Groups with dead letters", group).get_by_role("link").click()
    letter = row(visitor, "Dead letters", name)
    letter.get_by_role("checkbox").click()
    visitor.get_by_role("button", name="Resend the selected").click()
    visitor.get_by_text("1 dead letters of").wait_for()
    dialog_button(visitor, "Resend").click()
    visitor.get_by_text("Resent 1 of 1.").wait_for()
    wait_until(
        lambda: (
            [each.body for each in messages(wires.client.pull(name, queue=1))]
            == [b"again", b"again"]
        ),
        "the resent letter can be consumed",
    )
    row(visitor, "Dead letters", "yes").wait_for()


def test_a_delay_that_the_topic_would_ignore_is_refused(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    Shell(wires.terminal).run("topics", "create", name)
    visitor.goto(f"{console.url}/produce?topic={name}")
    visitor.get_by_label("Deliver after").fill("1h")
    visitor.get_by_label("Value", exact=True).fill("later")
    visitor.get_by_role("button", name="Send").click()
    visitor.get_by_text("delivers records at once, whatever their headers say").wait_for()
    visitor.get_by_label("Over").click()
    visitor.get_by_role("option", name="RocketMQ").click()
    visitor.get_by_role("button", name="Send").click()
    visitor.get_by_text(re.compile(f"Sent to {name}")).first.wait_for()
    visitor.goto(f"{console.url}/delayed?topic={name}")
    row(visitor, "The next delayed messages", name).get_by_role("link").first.click()
    visitor.get_by_role("button", name="Cancel it").click()
    dialog_button(visitor, "Cancel the message").click()
    visitor.get_by_text("delivered or cancelled").wait_for()


def test_a_half_message_is_committed(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    given = {"UNIQ_KEY": f"{name}-key", "TRAN_MSG": "true", "PGROUP": f"g-{name}", "KEYS": "k7"}
    answer = wires.client.publish(name, b"half", properties=given, sys_flag=PREPARED)
    assert answer.code == 0
    visitor.goto(f"{console.url}/transactions")
    row(visitor, "Half messages", name).get_by_role("link").first.click()
    visitor.get_by_role("button", name="Commit").click()
    visitor.get_by_text("The message will be delivered").wait_for()
    dialog_button(visitor, "Commit").click()
    visitor.wait_for_url("**/transactions")
    wait_until(
        lambda: [each.body for each in messages(wires.client.pull(name))] == [b"half"],
        "the committed half message can be consumed",
    )


def test_offsets_are_reset_after_the_change_was_seen(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    terminal, group = Shell(wires.terminal), f"g-{name}"
    terminal.run("topics", "create", name)
    terminal.pipe("produce", name, data=b"a\nb\nc\n")
    terminal.run("groups", "reset-offsets", group, "--topic", name, "--to-latest", "--execute")

    def committed() -> int:
        (found,) = terminal.json("groups", "describe", group)["groups"]
        return int(found["offsets"][0]["committed_offset"])

    assert committed() == 3
    visitor.goto(f"{console.url}/groups/{group}")
    visitor.get_by_role("button", name="Reset offsets").click()
    assert dialog_button(visitor, "Reset").is_disabled()
    visitor.get_by_role("button", name="Show what would change").click()
    cells = row(visitor, "What would change", name).locator("td")
    cells.first.wait_for()
    assert cells.all_inner_texts() == [name, "0", "3", "0", "3"]
    assert committed() == 3
    dialog_button(visitor, "Reset").click()
    wait_until(lambda: committed() == 0, "the offset is reset")


def test_a_topic_is_deleted_once_its_name_was_typed(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    Shell(wires.terminal).run("topics", "create", name)
    visitor.goto(f"{console.url}/topics/{name}")
    visitor.get_by_role("button", name="Delete topic").click()
    typed = visitor.get_by_label("Name, as confirmation")
    typed.fill(name[:-1])
    assert dialog_button(visitor, "Delete").is_disabled()
    typed.fill(name)
    dialog_button(visitor, "Delete").click()
    visitor.wait_for_url("**/topics")
    assert name not in Shell(wires.terminal).run("topics", "list")


def test_a_slash_searches_topics_and_groups(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    Shell(wires.terminal).run("topics", "create", f"{name}-sought")
    visitor.goto(f"{console.url}/cluster")
    row(visitor, "Brokers", "controller").wait_for()
    visitor.keyboard.press("/")
    visitor.get_by_label("Search topics and groups").fill(f"{name}-sou")
    visitor.locator(".rg-search-result", has_text=f"{name}-sought").wait_for()
    visitor.keyboard.press("Enter")
    visitor.wait_for_url(f"**/topics/{name}-sought")


def test_a_delayed_message_is_delivered_now(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    given = {"UNIQ_KEY": f"{name}-key", "TIMER_DELAY_MS": "3600000"}
    assert wires.client.publish(name, b"later", properties=given).code == 0
    visitor.goto(f"{console.url}/delayed?topic={name}&span=day")
    row(visitor, "The next delayed messages", name).get_by_role("link").first.click()
    visitor.get_by_role("button", name="Deliver it now").click()
    visitor.get_by_text(f"The message will be delivered to {name} at once.").wait_for()
    dialog_button(visitor, "Deliver now").click()
    visitor.get_by_text(f"Delivered as {name}/0/0").wait_for()
    assert [each.body for each in messages(wires.client.pull(name))] == [b"later"]


def test_quotas_are_set_and_removed(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    def quotas() -> list[dict[str, float]]:
        found = Shell(wires.terminal).json("quotas", "describe", "--user", name)["quotas"]
        return [each["quotas"] for each in found]

    for value, expected in (("1048576", [{"producer_byte_rate": 1048576.0}]), ("", [])):
        visitor.goto(f"{console.url}/clients")
        visitor.get_by_role("button", name="Change quotas").click()
        visitor.locator(".q-dialog").get_by_label("User", exact=True).fill(name)
        field = visitor.get_by_label("Produced bytes a second")
        field.click()
        if not value:
            # What is set is filled in once it is known whose quotas these are.
            expect(field).to_have_value("1048576")
        field.fill(value)
        dialog_button(visitor, "Set").click()
        visitor.get_by_text("Quotas changed.").wait_for()
        assert quotas() == expected


def test_the_log_is_checked_in_the_background(console: RunningConsole, visitor: Any) -> None:
    visitor.goto(f"{console.url}/log")
    visitor.get_by_role("button", name="Check the log").click()
    visitor.get_by_text("Nothing is damaged.").wait_for()


def test_a_message_shows_its_trace(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str
) -> None:
    given = {"UNIQ_KEY": f"{name}-ID", "KEYS": "k1"}
    assert wires.client.publish(name, b"traced", properties=given).code == 0
    fields = ("Pub", "1767225600000", "r", "shop", name, f"{name}-ID", "", "k1", "b:1", "6", "3")
    body = "\x01".join([*fields, "0", "AC", "true"]) + "\x02"
    keys = {"UNIQ_KEY": f"{name}-trace", "KEYS": f"{name}-ID k1"}
    answer = wires.client.publish("RMQ_SYS_TRACE_TOPIC", body.encode(), properties=keys)
    assert answer.code == 0
    visitor.goto(f"{console.url}/messages/{name}/0/0")
    cells = row(visitor, "Trace", "sent, normal").locator("td")
    cells.first.wait_for()
    assert cells.all_inner_texts()[2:4] == ["success", "3 ms"]


def test_hanging_transactions_are_looked_for_in_the_background(
    console: RunningConsole, visitor: Any
) -> None:
    visitor.goto(f"{console.url}/transactions")
    visitor.get_by_role("button", name="Find hanging transactions").click()
    visitor.get_by_text("No hanging transactions found.").wait_for()
    visitor.get_by_text(re.compile(r"Asked for [\d,]+ partitions.")).wait_for()


LISTENER = """
import asyncio, sys
from pathlib import Path
from rockgate.sdk import Consumer, ConsumerSettings, Received

async def main() -> None:
    address, group, topic, mended = sys.argv[1:]
    settings = ConsumerSettings(tries_max=0)
    consumer = Consumer(address, group=group, settings=settings, trace=True)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        if not Path(mended).exists():
            raise RuntimeError("not today")
        print(message.body.decode(), flush=True)

    async with consumer:
        print("listening", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.long
def test_what_a_failing_listener_left_is_resent_and_consumed(
    wires: BothWires, console: RunningConsole, visitor: Any, name: str, tmp_path: Path
) -> None:
    """The listener of an SDK's consumer raises, is mended, and gets the message again."""
    group, mended = f"g-{name}", tmp_path / "mended"
    Shell(wires.terminal).run("topics", "create", name)
    host, port = wires.server.address("namesrv")
    program = [sys.executable, "-c", LISTENER, f"{host}:{port}", group, name, str(mended)]
    with subprocess.Popen(
        program, env=environment(None), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as listener:
        try:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "listening\n"
            given = {"UNIQ_KEY": f"{name}-key", "KEYS": "order-7"}
            assert wires.client.publish(name, b"pay order 7", properties=given).code == 0
            visitor.goto(f"{console.url}/dead-letters")
            row(visitor, "Groups with dead letters", group).get_by_role("link").click()
            row(visitor, "Dead letters", "order-7").wait_for(timeout=LONG_MS)
            mended.touch()
            visitor.get_by_role("button", name="Resend all that match").click()
            dialog_button(visitor, "Resend").click()
            visitor.get_by_text("Resent 1 of 1.").wait_for()
            row(visitor, "Resent", f"{name}/").wait_for()
            assert listener.stdout.readline() == "pay order 7\n"
            visitor.get_by_role("link", name=f"{name}/").click()
            row(visitor, "Trace", "consumed").wait_for(timeout=LONG_MS)
        finally:
            listener.kill()
