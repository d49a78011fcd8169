"""Logins: visitors are users of the server, and see what these may see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.secured import Secured
from tests.console.running import RunningConsole, Shell
from tests.gateway.server import RunningServer

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    found = Secured(tmp_path_factory.mktemp("secured"))
    found.init()
    return found


@pytest.fixture(scope="module")
def server(secured: Secured) -> Iterator[RunningServer]:
    with secured.running() as running:
        yield running


@pytest.fixture(scope="module")
def console(
    secured: Secured, server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningConsole]:
    flags = ("--client-config", str(secured.client_config), "--metrics-tls")
    with RunningConsole(tmp_path_factory.mktemp("console"), server, *flags) as running:
        yield running
        assert "Traceback" not in running.log


def log_in(page: Any, name: str, password: str) -> None:
    page.get_by_label("User").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_a_visitor_logs_in_and_sees_what_this_user_may_see(
    secured: Secured,
    server: RunningServer,
    console: RunningConsole,
    visitor: Any,
    tmp_path: Path,
) -> None:
    shell = Shell(secured.administrator(server))
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    shell.run("users", "create", "ann", "--password-file", str(file), "--rocketmq")
    for topic in ("visible", "secret"):
        shell.run("topics", "create", topic)
    grant = ("--allow-principal", "User:ann", "--operation", "Describe", "--topic", "visible")
    shell.run("acls", "add", *grant)

    visitor.goto(f"{console.url}/topics")
    visitor.wait_for_url(re.compile("/login"))
    assert visitor.locator("body").inner_text().find("secret") < 0
    log_in(visitor, "ann", "wrong password")
    visitor.get_by_role("alert").filter(has_text="is wrong").wait_for()

    log_in(visitor, "ann", PASSWORD)
    visitor.wait_for_url("**/topics")
    visitor.get_by_role("link", name="visible").wait_for()
    assert visitor.get_by_role("link", name="secret").count() == 0
    (cookie,) = (c for c in visitor.context.cookies() if c["name"] == "rockgate_session")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"

    visitor.get_by_role("button", name="ann").click()
    visitor.wait_for_url(re.compile("/login"))
    visitor.context.add_cookies([cookie])
    visitor.goto(f"{console.url}/topics")
    visitor.wait_for_url(re.compile("/login"))


def test_two_visitors_are_two_users(
    secured: Secured, server: RunningServer, console: RunningConsole, visitor: Any
) -> None:
    shell = Shell(secured.administrator(server))
    shell.run("topics", "create", "for-admin")
    visitor.goto(f"{console.url}/topics")
    log_in(visitor, "admin", secured.password())
    visitor.get_by_role("link", name="for-admin").wait_for()
    other = visitor.context.browser.new_context()
    page = other.new_page()
    page.goto(f"{console.url}/topics")
    page.wait_for_url(re.compile("/login"))
    other.close()
