import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest
from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer
from tests.waiting import wait_until


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    listener = socket.create_server(("127.0.0.1", 0))
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("groups", "describe", "g"),
        ("configs", "describe", "topic", "t"),
        ("quotas", "describe"),
        ("cluster", "describe"),
        ("consume", "t"),
        ("produce", "t", "x"),
    ],
)
def test_without_a_server_the_status_is_3_and_it_says_where_to_look(
    arguments: tuple[str, ...],
) -> None:
    said = Terminal("127.0.0.1:1").run(*arguments, status=3)
    assert said == (
        "rockgate: Cannot connect to 127.0.0.1:1: connection refused. Is a server running there?"
        " Set its address with --bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER.\n"
    )


def test_programs_get_json_even_when_no_one_is_there() -> None:
    told = Terminal("127.0.0.1:1").json("topics", "list", status=3)
    (error,) = told["errors"]
    assert error["error"] == "UNREACHABLE"
    assert error["message"] == "Cannot connect to 127.0.0.1:1: connection refused."


def test_a_server_that_says_nothing_is_given_up_in_time(silent: str) -> None:
    said = Terminal(silent).run("topics", "list", "--timeout", "100ms", status=3)
    assert f"{silent} accepted the connection but did not respond within 0.1 s" in said


def test_a_name_that_no_one_knows_is_said() -> None:
    said = Terminal("nowhere.invalid:9092").run("topics", "list", status=3)
    assert "Cannot resolve host nowhere.invalid" in said


def test_a_server_of_another_protocol_is_said(server: RunningServer) -> None:
    host, port = server.address("http")
    said = Terminal(f"{host}:{port}").run("topics", "list", "--timeout", "5s", status=3)
    assert f"{host}:{port} " in said and "not a Kafka port" in said
    assert " Set the Kafka port with --bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER; " in said


def test_the_flag_wins_over_the_environment(terminal: Terminal) -> None:
    terminal.run("topics", "list", "-b", "127.0.0.1:1", status=3)


def test_the_second_of_several_servers_will_do(terminal: Terminal, server: RunningServer) -> None:
    terminal.run("topics", "list", "--bootstrap-server", f"127.0.0.1:1,{server.bootstrap}")


def test_ctrl_c_ends_a_command_that_waits(silent: str) -> None:
    with Terminal(silent).start("topics", "list", "--timeout", "1h") as process:
        wait_for_connection(silent, process)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, b"", b"")


def wait_for_connection(address: str, process: subprocess.Popen[bytes]) -> None:
    """The process is connected as soon as its end of the connection shows in its descriptors."""

    def is_connected() -> bool:
        folder = f"/proc/{process.pid}/fd"
        links = []
        for each in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                links.append(os.readlink(f"{folder}/{each}"))
        return sum(link.startswith("socket:") for link in links) > 2

    wait_until(is_connected, "the command has connected")


def test_a_table_that_no_one_reads_to_its_end_is_no_traceback(terminal: Terminal) -> None:
    with terminal.start("cluster", "apis", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.wait(60)
        assert b"Traceback" not in process.stderr.read()


def test_json_has_one_shape(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name)
    for arguments in (
        ("topics", "list"),
        ("topics", "describe", name),
        ("topics", "offsets", name),
        ("groups", "list"),
        ("groups", "lag"),
        ("groups", "state"),
        ("configs", "list", "--kind", "topic"),
        ("configs", "describe", "topic", name),
        ("cluster", "describe"),
        ("cluster", "apis"),
    ):
        told = terminal.json(*arguments)
        assert told["errors"] == [], arguments
        assert any(isinstance(value, list) for key, value in told.items() if key != "errors")


def test_programs_get_no_colours(terminal: Terminal) -> None:
    out = terminal.pipe("cluster", "apis")
    assert b"\x1b" not in out
    assert all(line == line.rstrip() for line in out.decode().splitlines())
    json.loads(terminal.pipe("cluster", "apis", "--json"))
