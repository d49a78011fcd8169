from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer

FREE = ("--kafka", "127.0.0.1:0", "--remoting", "off", "--namesrv", "off", "--http", "off")


def by_check(told: dict[str, list[dict[str, str]]]) -> dict[str, dict[str, str]]:
    return {each["check"]: each for each in told["findings"]}


@pytest.fixture
def user() -> Terminal:
    return Terminal("127.0.0.1:1")


def test_a_machine_without_a_server_is_looked_at_and_nothing_is_made(
    user: Terminal, tmp_path: Path
) -> None:
    told = by_check(user.json("doctor", "--data-dir", str(tmp_path / "data"), *FREE))
    assert told["data directory"]["status"] == "ok"
    assert told["listener kafka"]["found"] == "A free port of 127.0.0.1 is taken at the start."
    assert "running server" not in told
    assert not (tmp_path / "data").exists()


def test_a_port_of_another_program_is_a_problem_with_a_remedy(
    user: Terminal, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        options = ("--data-dir", str(tmp_path), *FREE, "--kafka", address)
        told = by_check(user.json("doctor", *options, status=1))
    assert told["listener kafka"]["status"] == "problem"
    assert "another port" in told["listener kafka"]["remedy"]


def test_a_server_that_runs_is_asked_whether_it_is_ready(
    user: Terminal, server: RunningServer
) -> None:
    ports = [
        each
        for label in ("kafka", "http")
        for each in (f"--{label}", "{}:{}".format(*server.address(label)))
    ]
    options = ("--remoting", "off", "--namesrv", "off", *ports)
    told = by_check(user.json("doctor", "--data-dir", str(server.data_dir), *options))
    assert told["data directory"]["found"].startswith("The server with process id ")
    assert told["listener kafka"]["status"] == "ok"
    assert told["running server"]["found"] == "It says: ready."


def test_a_listener_that_lets_everybody_in_is_a_problem(user: Terminal, tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path), *FREE, "--kafka", "0.0.0.0:0")
    told = by_check(user.json("doctor", *options, status=1))
    assert told["security"]["status"] == "problem"


def test_people_see_a_table_and_a_wrong_setting_is_status_2(user: Terminal, tmp_path: Path) -> None:
    shown = user.run("doctor", "--data-dir", str(tmp_path), *FREE)
    assert shown.split("\n")[0].startswith("check ")
    assert "listener kafka" in shown
    assert "kafka.lisen" in user.run("doctor", "--set", "kafka.lisen=x", status=2)
