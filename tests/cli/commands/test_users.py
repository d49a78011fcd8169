"""Users and ACLs over a plain listener, where every client is an administrator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.cli.two_listeners import BothWires, both_wires
from tests.gateway.server import RunningServer

from rockgate.cli.app.connection import PASSWORD_REASON

ADMINISTERED = ("security.authorization=on", "security.super_users=User:ANONYMOUS")
SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("users"), *ADMINISTERED) as found:
        yield found


@pytest.fixture
def terminal(wires: BothWires) -> Terminal:
    return wires.terminal


@pytest.fixture
def password(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text("hunter2\nignored\n")
    return str(file)


def credentials(terminal: Terminal, name: str) -> list[str]:
    (user,) = terminal.json("users", "describe", name)["users"]
    return [each["mechanism"] for each in user["credentials"]]


def test_a_user_is_created_shown_and_deleted(terminal: Terminal, password: str, name: str) -> None:
    said = terminal.run("users", "create", name, "--password-file", password)
    assert said == f"Created user {name}. Let it do something with `rockgate acls add`.\n"
    (row,) = terminal.rows("users", "describe", name)
    both = "SCRAM-SHA-256 (4,096 iterations), SCRAM-SHA-512 (4,096 iterations)"
    assert " ".join(row) == f"{name} normal enabled {both}"
    assert [name] in [row[:1] for row in terminal.rows("users", "list")]
    assert terminal.run("users", "delete", name, "--yes") == f"Deleted user {name}.\n"
    assert terminal.json("users", "describe", name, status=1)["errors"][0]["what"] == f"user {name}"


def test_a_super_user_can_sign_and_has_the_mechanisms_that_were_chosen(
    terminal: Terminal, password: str, name: str
) -> None:
    terminal.run(
        *("users", "create", name, "--super", "--rocketmq"),
        *("--mechanism", "SCRAM-SHA-512", "--password-file", password),
    )
    assert terminal.json("users", "describe", name)["users"] == [
        {
            "name": name,
            "type": "super",
            "status": "enabled",
            "credentials": [
                {"mechanism": "SCRAM-SHA-512", "iterations": 4096},
                {"mechanism": "SIGNATURE", "iterations": None},
            ],
        }
    ]


def test_a_user_is_not_created_twice(terminal: Terminal, password: str, name: str) -> None:
    create = ("users", "create", name, "--password-file", password)
    terminal.run(*create)
    assert f"rockgate users password {name}" in terminal.run(*create, status=1)
    assert "The user is existed" in terminal.run(*create, "--super", status=1)


def test_a_new_password_is_for_what_the_user_has_and_may_be_for_more(
    terminal: Terminal, password: str, name: str
) -> None:
    terminal.run(
        *("users", "create", name, "--mechanism", "SCRAM-SHA-256", "--password-file", password)
    )
    change = ("users", "password", name, "--password-file", password)
    assert terminal.run(*change) == f"Changed the password of {name} for SCRAM-SHA-256.\n"
    terminal.run(*change, "--mechanism", "SCRAM-SHA-512")
    assert credentials(terminal, name) == SCRAM
    terminal.run(*change, "--rocketmq")
    assert credentials(terminal, name) == [*SCRAM, "SIGNATURE"]
    assert terminal.json(*change)["users"][0]["credentials"] == [*SCRAM, "SIGNATURE"]


def test_a_user_is_disabled_and_enabled(terminal: Terminal, password: str, name: str) -> None:
    terminal.run("users", "create", name, "--password-file", password)
    assert terminal.run("users", "disable", name) == f"Disabled user {name}.\n"
    assert terminal.json("users", "describe", name)["users"][0]["status"] == "disabled"
    terminal.run("users", "enable", name)
    assert terminal.json("users", "describe", name)["users"][0]["status"] == "enabled"
    assert "does not exist" in terminal.run("users", "enable", f"no-{name}", status=1)


def test_without_rocketmq_s_listener_kafka_s_wire_does_what_it_can(
    terminal: Terminal, password: str, name: str
) -> None:
    alone = Terminal(terminal.variables["ROCKGATE_BOOTSTRAP_SERVER"])
    alone.run("users", "create", name, "--password-file", password)
    assert alone.json("users", "describe", name)["users"][0]["type"] is None
    alone.run("users", "password", name, "--password-file", password)
    alone.run(
        "acls", "add", "--allow-principal", f"User:{name}", "--operation", "read", "--cluster"
    )
    alone.run("users", "delete", name, "--yes")
    assert alone.json("acls", "list", "--principal", f"User:{name}")["acls"] == []
    said = alone.run("users", "create", name, "--super", "--password-file", password, status=3)
    assert "Set its address with --broker" in said


@pytest.mark.row("SEC-11")
def test_a_password_on_the_command_line_is_refused_with_the_reason(terminal: Terminal) -> None:
    for command in (("topics", "list"), ("users", "create", "alice"), ("acls", "list")):
        said = terminal.run(*command, "--password", "hunter2", status=2)
        assert said == f"rockgate: {PASSWORD_REASON}\n"


def test_a_password_file_that_cannot_be_used_is_said(terminal: Terminal, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for file, why in (("/nowhere", "No such file"), (str(empty), "the password is empty")):
        assert why in terminal.run("users", "create", "x", "--password-file", file, status=2)


def test_a_password_is_not_sent_in_clear_to_another_machine(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2")
    far = Terminal("127.0.0.1:1", "192.0.2.1:10911")
    said = far.run("users", "create", "x", "--super", "--password-file", str(file), status=1)
    assert "The password would be sent to 192.0.2.1:10911 in clear." in said


# The first administrator


def test_an_administrator_is_made_before_the_first_start(tmp_path: Path, password: str) -> None:
    terminal = Terminal("127.0.0.1:1")
    small = ("--set", "store.segment_bytes=16MiB")
    data = str(tmp_path / "data")
    bootstrap = ("users", "bootstrap", "admin", "--data-dir", data, "--password-file", password)
    said = terminal.run(*bootstrap, *small)
    assert said == f"User admin is a super user of the server in {data}.\n"
    with RunningServer(tmp_path, rocketmq=True, settings=ADMINISTERED) as server:
        host, port = server.address("remoting")
        online = Terminal(server.bootstrap, f"{host}:{port}")
        (admin,) = online.json("users", "list")["users"]
        assert (admin["name"], admin["type"], admin["status"]) == ("admin", "super", "enabled")
        assert [each["mechanism"] for each in admin["credentials"]] == [*SCRAM, "SIGNATURE"]
        online.run("users", "disable", "admin")
        in_use = terminal.run(*bootstrap, *small, "--yes", status=1)
        assert f"Data directory {data} is in use by process {server.pid}." in in_use
        server.stop_cleanly()
    # A way back in, when all administrators are lost.
    terminal.run(*bootstrap, *small, "--yes")
    with RunningServer(tmp_path, rocketmq=True, settings=ADMINISTERED) as server:
        host, port = server.address("remoting")
        online = Terminal(server.bootstrap, f"{host}:{port}")
        assert online.json("users", "list")["users"][0]["status"] == "enabled"
        server.stop_cleanly()


# ACLs


def test_acls_are_added_listed_and_removed(terminal: Terminal, name: str) -> None:
    principal = f"User:{name}"
    add = ("acls", "add", "--allow-principal", principal, "--producer", "--topic", f"t-{name}")
    dry = terminal.json(*add, "--dry-run")["acls"]
    assert [(each["operation"], each["is_added"]) for each in dry] == [
        ("WRITE", False),
        ("DESCRIBE", False),
        ("CREATE", False),
    ]
    assert terminal.json("acls", "list", "--principal", principal)["acls"] == []
    assert terminal.run(*add).startswith("3 ACLs added.\n")
    assert terminal.run(*add) == "3 ACLs there already.\n"
    assert [row[1:4] for row in terminal.rows("acls", "list", "--principal", principal)] == [
        ["Allow", "Write", "topic"],
        ["Allow", "Create", "topic"],
        ["Allow", "Describe", "topic"],
    ]
    remove = ("acls", "remove", "--principal", principal, "--operation", "write")
    assert "1 ACL would be removed." in terminal.run(*remove, "--dry-run")
    assert "1 ACL removed." in terminal.run(*remove, "--yes")
    assert terminal.run(*remove) == ""
    terminal.run("acls", "remove", "--topic", f"t-{name}", "--yes")
    assert terminal.json("acls", "list", "--principal", principal)["acls"] == []


def test_patterns_hosts_and_denials_are_kafka_s(terminal: Terminal, name: str) -> None:
    principal = f"User:{name}"
    terminal.run(
        *("acls", "add", "--allow-principal", principal, "--deny-principal", "User:*"),
        *("--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2", "--deny-host", "10.0.0.9"),
        *("--operation", "IdempotentWrite", "--operation", "describe-configs"),
        *("--topic", f"{name}-", "--prefixed"),
    )
    found = terminal.json("acls", "list", "--topic", f"{name}-x", "--pattern", "match")["acls"]
    assert {(each["principal"], each["permission"], each["host"]) for each in found} == {
        (principal, "ALLOW", "10.0.0.1"),
        (principal, "ALLOW", "10.0.0.2"),
        ("User:*", "DENY", "10.0.0.9"),
    }
    assert {each["pattern_type"] for each in found} == {"PREFIXED"}
    assert {each["operation"] for each in found} == {"IDEMPOTENT_WRITE", "DESCRIBE_CONFIGS"}
    # A name that is meant literally leaves the prefix alone.
    assert terminal.run("acls", "remove", "--topic", f"{name}-", "--yes") == ""
    terminal.run("acls", "remove", "--topic", f"{name}-", "--prefixed", "--yes")
    assert terminal.json("acls", "list", "--topic", f"{name}-")["acls"] == []


def test_what_a_consumer_needs(terminal: Terminal, name: str) -> None:
    terminal.run(
        *("acls", "add", "--allow-principal", f"User:{name}", "--consumer"),
        *("--topic", name, "--group", f"g-{name}"),
    )
    found = terminal.json("acls", "list", "--principal", f"User:{name}")["acls"]
    assert [(each["resource_type"], each["operation"]) for each in found] == [
        ("TOPIC", "READ"),
        ("TOPIC", "DESCRIBE"),
        ("GROUP", "READ"),
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("add", "--topic", "t", "--operation", "read"), "Say who: --allow-principal"),
        (
            ("add", "--allow-principal", "alice", "--topic", "t", "--operation", "read"),
            "User:alice",
        ),
        (("add", "--allow-principal", "User:a", "--operation", "read"), "Give a resource: --topic"),
        (("add", "--allow-principal", "User:a", "--topic", "t"), "Say what for: --operation"),
        (
            ("add", "--allow-principal", "User:a", "--topic", "t", "--operation", "reed"),
            "expected one of All, Read, Write",
        ),
        (("add", "--allow-principal", "User:a", "--group", "g", "--producer"), "needs a --topic."),
        (
            ("add", "--allow-principal", "User:a", "--topic", "t", "--consumer"),
            "needs a --topic and a --group.",
        ),
        (
            *(("add", "--allow-principal", "User:a", "--topic", "*", "--prefixed", "--producer"),),
            "only without --prefixed",
        ),
        (
            (*("add", "--allow-principal", "User:a", "--topic", "t"), "--producer", "--host", "h"),
            "names never match",
        ),
        (("remove",), "or --all"),
        (("remove", "--all", "--topic", "t"), "or --all"),
    ],
)
def test_what_makes_no_sense_is_status_2(
    terminal: Terminal, arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in terminal.run("acls", *arguments, status=2)


def test_a_server_that_does_not_authorize_says_how_it_would(server: RunningServer) -> None:
    told = Terminal(server.bootstrap).json("acls", "list", status=1)
    assert told["errors"][0]["error"] == "SECURITY_DISABLED"
    said = Terminal(server.bootstrap).run("acls", "list", status=1)
    assert "security.authorization" in said


def test_json_has_one_shape(terminal: Terminal) -> None:
    for command in (("users", "list"), ("acls", "list")):
        told = json.loads(terminal.run(*command, "--json"))
        assert list(told) == [command[0], "errors"]
