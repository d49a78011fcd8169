"""Hooks from installed packages: named by a setting, loaded at the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import ROOMS, ROOT, NotReady, RunningServer

from rockgate.gateway.remoting.hooks.installed import load_hooks
from rockgate.gateway.runtime.errors import StartError

HOOK = """
class Audit:
    def __init__(self):
        self.path = "{path}"

    def after_send(self, context):
        with open(self.path, "a") as file:
            print("sent", context.topic, context.outcome.code, context.queue_offset, file=file)

    def after_consume(self, context):
        with open(self.path, "a") as file:
            print(context.kind, context.topic, context.outcome.code, file=file)


def broken():
    raise ValueError("no database")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package that has two hooks."""
    folder = tmp_path / "site"
    info = folder / "audited-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "audited.py").write_text(HOOK.format(path=tmp_path / "audit.txt"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: audited\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[rockgate.hooks]\naudit = audited:Audit\nbroken = audited:broken\n"
    )
    return folder


@pytest.fixture
def importable(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    yield


def test_hooks_are_loaded_in_the_order_of_the_setting(importable: None) -> None:
    assert load_hooks("") == []
    [(name, hook)] = load_hooks(" audit ,")
    assert name == "audit" and type(hook).__name__ == "Audit"


def test_a_name_that_is_not_installed_stops_the_start_and_says_which_are(importable: None) -> None:
    with pytest.raises(StartError) as raised:
        load_hooks("audit,adit")
    assert "Hook not found: adit." in str(raised.value)
    assert "Installed hooks: audit, broken." in str(raised.value)


def test_a_hook_that_cannot_be_made_stops_the_start_and_says_why(importable: None) -> None:
    with pytest.raises(StartError, match=r"Hook 'broken' \(audited:broken\) cannot be loaded"):
        load_hooks("broken")


def path_with(site: Path) -> dict[str, str]:
    return {"PYTHONPATH": ":".join([*(str(ROOT / room) for room in ROOMS), str(site)])}


@pytest.mark.row("OBS-4")
def test_a_server_calls_the_hooks_of_its_settings(tmp_path: Path, site: Path) -> None:
    with RunningServer(
        tmp_path,
        rocketmq=True,
        settings=["remoting.hooks=audit"],
        variables=path_with(site),
    ) as server:
        client = Client(server.address("remoting"))
        assert client.publish("orders", b"one").code == 0
        client.pull("orders")
        client.socket.close()
    lines = (tmp_path / "audit.txt").read_text().splitlines()
    assert lines == ["sent orders 0 0", "pull orders 0"]


def test_a_server_with_an_unknown_hook_does_not_start(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, rocketmq=True, settings=["remoting.hooks=adit"])
    with pytest.raises(NotReady, match="Hook not found: adit"):
        server.start()
