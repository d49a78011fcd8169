from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.cli.terminal import Terminal
from tests.cli.two_listeners import BothWires, both_wires


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("find")) as running:
        yield running


@pytest.fixture
def terminal(wires: BothWires) -> Terminal:
    return wires.terminal


def create(terminal: Terminal, topic: str, *configs: str) -> None:
    terminal.run("topics", "create", topic, "--partitions", "2", *configs)


def produce(terminal: Terminal, topic: str, *lines: str, options: tuple[str, ...] = ()) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    terminal.pipe("produce", topic, "--key-separator", ":", *options, data=data)


def values(told: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["value"] for each in told["messages"]]


@pytest.mark.parametrize("configs", [(), ("--config", "message.index=true")])
def test_records_of_a_key_are_found_with_and_without_an_index(
    terminal: Terminal, name: str, configs: tuple[str, ...]
) -> None:
    create(terminal, name, *configs)
    produce(terminal, name, "7:one", "8:two", "7:three", "77:four")
    told = terminal.json("find", name, "--key", "7")
    assert values(told) == ["one", "three"]
    assert {each["topic"] for each in told["messages"]} == {name}
    assert told["errors"] == []


def test_what_was_sent_before_the_index_is_found_by_a_scan(terminal: Terminal, name: str) -> None:
    create(terminal, name)
    produce(terminal, name, "7:before")
    terminal.run("configs", "set", "topic", name, "message.index=true")
    produce(terminal, name, "7:after")
    assert values(terminal.json("find", name, "--key", "7")) == ["after"]
    assert values(terminal.json("find", name, "--key", "7", "--scan")) == ["before", "after"]


def test_a_search_by_key_ends_at_the_limit_and_begins_at_a_time(
    terminal: Terminal, name: str
) -> None:
    create(terminal, name)
    produce(terminal, name, "7:old", options=("--timestamp", "2026-01-01T00:00:00Z"))
    produce(terminal, name, "7:new", "7:newer")
    assert values(terminal.json("find", name, "--key", "7", "--limit", "1")) == ["old"]
    assert values(terminal.json("find", name, "--key", "7", "--since", "1h")) == ["new", "newer"]


def test_any_key_of_a_rocketmq_message_finds_it(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    create(terminal, name)
    wires.client.publish(name, b"hello", properties={"UNIQ_KEY": f"{name}-1", "KEYS": "red blue"})
    for key in ("red", "blue"):
        assert values(terminal.json("find", name, "--key", key)) == ["hello"]
    terminal.json("find", name, "--key", "red blue", status=1)


def test_a_message_is_found_by_each_of_its_ids(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    create(terminal, name)
    answer = wires.client.publish(name, b"hello", properties={"UNIQ_KEY": f"{name}-1"})
    partition, offset = answer.fields["queueId"], answer.fields["queueOffset"]
    for id_ in (
        f"{name}-1",
        answer.fields["msgId"],
        f"{name}/{partition}/{offset}",
        f"{partition}/{offset}",
    ):
        assert values(terminal.json("find", name, "--id", id_)) == ["hello"]


def test_a_time_finds_the_first_message_of_each_partition_from_then_on(
    terminal: Terminal, name: str
) -> None:
    create(terminal, name)
    for partition in ("0", "1"):
        for day in (1, 2, 3):
            options = ("--partition", partition, "--timestamp", f"2026-01-0{day}T00:00:00Z")
            produce(terminal, name, f"k:{partition}-{day}", options=options)
    told = terminal.json("find", name, "--time", "2026-01-01T12:00:00Z")
    assert values(told) == ["0-2", "1-2"]
    terminal.json("find", name, "--time", str(int(time.time() * 1000)), status=1)


def test_people_see_a_table_and_what_is_not_found_is_status_1(
    terminal: Terminal, name: str
) -> None:
    create(terminal, name)
    produce(terminal, name, "7:espresso")
    [row] = terminal.rows("find", name, "--key", "7")
    assert row[-2:] == ["7", "espresso"]
    assert terminal.run("find", name, "--key", "9", status=1) == (
        f"rockgate: {name}: no such message.\n"
    )
    assert "UNKNOWN_TOPIC" in terminal.run("find", f"{name}-x", "--key", "9", status=1)


@pytest.mark.parametrize(
    "options",
    [(), ("--key", "1", "--id", "2"), ("--time", "1h", "--scan"), ("--key", "1", "-b", "")],
)
def test_a_search_that_is_not_clear_asks_nobody(
    terminal: Terminal, options: tuple[str, ...]
) -> None:
    assert terminal.run("find", "orders", *options, status=2).startswith("rockgate: ")
