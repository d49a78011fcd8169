from pathlib import Path

from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer


def configs(terminal: Terminal, topic: str, *flags: str) -> dict[str, str]:
    (found,) = terminal.json("configs", "describe", "topic", topic, *flags)["resources"]
    return {each["name"]: each["value"] for each in found["configs"]}


def test_configs_are_set_and_unset_one_by_one(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-c", "segment.ms=1000")
    said = terminal.run("configs", "set", "topic", name, "retention.ms=5000")
    assert said == f"Changed topic {name}.\n"
    assert configs(terminal, name) == {"retention.ms": "5000", "segment.ms": "1000"}
    terminal.run("configs", "set", "topic", name, "--append", "cleanup.policy=compact")
    assert configs(terminal, name)["cleanup.policy"] == "delete,compact"
    terminal.run("configs", "set", "topic", name, "--subtract", "cleanup.policy=delete")
    assert configs(terminal, name)["cleanup.policy"] == "compact"
    terminal.run("configs", "unset", "topic", name, "retention.ms", "cleanup.policy")
    assert configs(terminal, name) == {"segment.ms": "1000"}
    assert configs(terminal, name, "--all")["retention.ms"] == "604800000"


def test_a_table_says_where_each_value_comes_from(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-c", "retention.ms=7")
    assert terminal.rows("configs", "describe", "topic", name) == [
        ["retention.ms", "7", "topic", "long"]
    ]
    told = terminal.run("configs", "describe", "topic", name, "--all", "--docs")
    assert "Compression of stored batches" in told
    assert terminal.rows("configs", "describe", "broker", "1", "--all")


def test_a_dry_run_changes_nothing(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name)
    terminal.run("configs", "set", "topic", name, "retention.ms=1", "--dry-run")
    assert configs(terminal, name) == {}


def test_the_server_may_refuse(terminal: Terminal, name: str) -> None:
    said = terminal.run("configs", "set", "topic", f"{name}-no", "retention.ms=1", status=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in said
    said = terminal.run("configs", "describe", "topic", f"{name}-no", status=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in said
    assert "Broker 77 does not exist" in terminal.run(
        "configs", "describe", "broker", "77", status=1
    )


def test_what_makes_no_sense_is_status_2(terminal: Terminal) -> None:
    assert "Nothing to set" in terminal.run("configs", "set", "topic", "t", status=2)
    assert "Invalid CONFIG: expected NAME=VALUE" in terminal.run(
        "configs", "set", "topic", "t", "x", status=2
    )
    assert "expected a numeric broker id" in terminal.run(
        "configs", "describe", "broker", "b", status=2
    )


def test_what_has_configs_is_listed(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name)
    found = terminal.json("configs", "list", "--kind", "topic")["resources"]
    assert {"kind": "topic", "name": name} in found
    assert ["broker", "1"] in terminal.rows("configs", "list")


def test_what_flags_gave_the_server_is_shown_with_its_source(terminal: Terminal) -> None:
    (told,) = terminal.json("configs", "describe", "broker", "1")["resources"]
    found = {each["name"]: each for each in told["configs"]}
    assert found["server.data_dir"]["source"] == "server"
    assert found["kafka.listen"]["value"] == "127.0.0.1:0"
    assert "http.connections_max" not in found, "nobody set it"
    rows = {row[0]: row for row in terminal.rows("configs", "describe", "broker", "1")}
    assert "server," in rows["kafka.listen"]


def test_a_flag_with_the_default_s_value_is_shown_as_given(tmp_path: Path) -> None:
    with RunningServer(tmp_path, flags=["--set", "num.partitions=4"]) as server:
        terminal = Terminal(server.bootstrap)
        (told,) = terminal.json("configs", "describe", "broker", "1")["resources"]
    found = {each["name"]: each for each in told["configs"]}
    for name in ("topics.partitions", "num.partitions"):
        assert (found[name]["value"], found[name]["source"]) == ("4", "server")
