"""Logins: visitors are users of the server, and see what these may see."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.secured import Secured
from tests.console.running import RunningConsole, Shell
from tests.gateway.server import RunningServer, environment

from rockgate.cli.commands.secure import folder

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


def test_open_pages_end_with_their_session(
    secured: Secured, console: RunningConsole, visitor: Any
) -> None:
    visitor.goto(f"{console.url}/topics")
    log_in(visitor, "admin", secured.password())
    visitor.wait_for_url("**/topics")
    other = visitor.context.new_page()
    other.goto(f"{console.url}/cluster")
    other.locator('.rg-grid[aria-label="Brokers"]').wait_for()
    visitor.get_by_role("button", name="admin").click()
    visitor.wait_for_url(re.compile("/login"))
    other.wait_for_url(re.compile("/login"))


def test_over_tls_the_cookie_is_for_tls_and_this_host_only(
    secured: Secured, server: RunningServer, chromium: Any, tmp_path: Path
) -> None:
    files = [str(secured.folder / name) for name in (folder.CERTIFICATE, folder.KEY)]
    pair = ("--certificate", files[0], "--key", files[1])
    flags = ("--client-config", str(secured.client_config), "--metrics-tls", *pair)
    with RunningConsole(tmp_path, server, *flags) as console:
        assert console.url.startswith("https://")
        context = chromium.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{console.url}/topics")
        log_in(page, "admin", secured.password())
        page.wait_for_url("**/topics")
        page.locator(".rg-title").wait_for()
        (cookie,) = (c for c in context.cookies() if c["httpOnly"])
        assert cookie["name"] == "__Host-rockgate_session"
        assert cookie["secure"] and cookie["path"] == "/"
        context.close()
        assert "Traceback" not in console.log


def test_a_certificate_that_cannot_be_used_is_said_so(
    secured: Secured, server: RunningServer, tmp_path: Path
) -> None:
    for file in ("nothing.pem", str(secured.client_config)):
        command = [
            *(sys.executable, "-m", "rockgate.console", "--listen", "127.0.0.1:0"),
            *("-b", server.bootstrap, "--certificate", file, "--key", file),
        ]
        done = subprocess.run(command, env=environment(None), capture_output=True, text=True)
        assert done.returncode == 1
        assert f"Cannot use the certificate {file} with {file}" in done.stderr
