from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cli.terminal import Terminal
from tests.cli.two_listeners import BothWires, both_wires
from tests.gateway.remoting.client import messages
from tests.waiting import wait_until

HOUR = "3600000"


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("delay")) as running:
        yield running


@pytest.fixture
def terminal(wires: BothWires) -> Terminal:
    return wires.terminal


def send(wires: BothWires, topic: str, key: str, **properties: str) -> dict[str, str]:
    answer = wires.client.publish(topic, b"hello", properties={"UNIQ_KEY": key, **properties})
    assert answer.code == 0, answer.remark
    return answer.fields


def of_topic(told: dict[str, Any], topic: str) -> list[dict[str, Any]]:
    return [each for each in told["counts"] if each["topic"] == topic]


def test_what_waits_is_counted_by_topic_and_due_time(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    for number, (kind, value) in enumerate(
        [("DELAY", "5"), ("TIMER_DELAY_SEC", "40"), ("TIMER_DELAY_SEC", "600")]
        + [("TIMER_DELAY_MS", HOUR[:-1])] * 2
        + [("TIMER_DELAY_SEC", "7200"), ("TIMER_DELAY_SEC", "200000")]
    ):
        send(wires, name, f"{name}-{number}", **{kind: value})
    told = terminal.json("delay", "list", "--topic", name)
    groups = ("overdue", "minute", "hour", "day", "later")
    assert {each["by"]: tuple(each[group] for group in groups) for each in told["counts"]} == {
        "level 5": (0, 1, 0, 0, 0),
        "timer": (0, 1, 3, 1, 1),
    }
    assert told["waiting"] >= 7
    assert of_topic(terminal.json("delay", "list", "--limit", "0"), name) == told["counts"]
    heading, *rows = terminal.run("delay", "list", "--topic", name, "--limit", "0").splitlines()
    assert heading.split() == ["topic", "by", "waiting", *groups]
    assert [name, "timer", "6", "0", "1", "3", "1", "1"] in [row.split() for row in rows]


def test_the_soonest_are_listed_in_order_and_page_by_page(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    for seconds in (500, 100, 300, 200, 400):
        send(wires, name, f"{name}-{seconds}", TIMER_DELAY_SEC=str(seconds), KEYS=f"k{seconds}")
    pages: list[list[str]] = []
    after: tuple[str, ...] = ()
    while True:
        told = terminal.json("delay", "list", "--topic", name, "--limit", "2", *after)
        pages.append([each["keys"] for each in told["messages"]])
        if told["next"] is None:
            break
        after = ("--after", told["next"])
    assert pages == [["k100", "k200"], ["k300", "k400"], ["k500"]]
    [first, *_] = told["messages"]
    assert first["topic"] == name
    assert (first["size_bytes"], first["by"], first["is_waiting"]) == (5, "timer", True)


def test_a_message_is_shown_by_any_of_its_ids(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    sent = send(wires, name, f"{name}-x", TIMER_DELAY_SEC="900", TAGS="red", colour="blue")
    [row] = terminal.json("delay", "list", "--topic", name)["messages"]
    for id_ in (row["id"], f"{name}-x", sent["recallHandle"], sent["msgId"]):
        [shown] = terminal.json("delay", "show", id_)["messages"]
        assert shown["id"] == row["id"]
        assert (shown["due_ms"], shown["topic"], shown["body"]) == (row["due_ms"], name, "hello")
        assert {"name": "colour", "value": "blue"} in shown["properties"]
    lines = dict(
        line.split(None, 1) for line in terminal.run("delay", "show", row["id"]).splitlines()
    )
    assert (lines["topic"], lines["tags"], lines["body"]) == (name, "red", "hello")


@pytest.mark.parametrize("delay", [{"TIMER_DELAY_SEC": "900"}, {"DELAY": "18"}])
def test_a_message_is_taken_back_once(
    wires: BothWires, terminal: Terminal, name: str, delay: dict[str, str]
) -> None:
    send(wires, name, f"{name}-x", **delay)
    [row] = terminal.json("delay", "list", "--topic", name)["messages"]
    said = terminal.run("delay", "cancel", row["id"], "--yes")
    assert said.startswith(f"Cancelled {row['id']} (topic {name}, due ")
    assert terminal.json("delay", "list", "--topic", name)["messages"] == []
    told = terminal.json("delay", "cancel", row["id"], status=1)
    assert told["messages"] == [{"id": row["id"], "is_cancelled": False, "delivered": None}]
    assert told["errors"][0]["error"] == "MISSED"
    assert "already delivered or cancelled" in told["errors"][0]["message"]


def test_a_message_is_delivered_now_and_once(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    send(wires, name, f"{name}-x", TIMER_DELAY_SEC="900")
    [row] = terminal.json("delay", "list", "--topic", name)["messages"]
    said = terminal.run("delay", "deliver", row["id"], "--yes")
    assert said.startswith(f"Delivered {row['id']} as {name}/0/0 (topic {name}, due ")
    assert len(messages(wires.client.pull(name))) == 1
    again = terminal.json("delay", "deliver", row["id"], status=1)
    assert again["messages"] == [
        {"id": row["id"], "is_delivered": False, "delivered": f"{name}/0/0"}
    ]
    assert f"already delivered as {name}/0/0" in again["errors"][0]["message"]


def test_a_cancel_that_comes_too_late_says_where_the_message_went(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    send(wires, name, f"{name}-x", TIMER_DELAY_MS="1")
    wait_until(lambda: len(messages(wires.client.pull(name))) == 1, "the delivery")
    said = terminal.run("delay", "cancel", f"{name}-x", status=1)
    assert f"already delivered as {name}/0/0" in said


def test_what_is_not_known_is_said_so_with_what_to_do(terminal: Terminal) -> None:
    said = terminal.run("delay", "show", "nothing", status=1)
    assert said == (
        "rockgate: nothing: not found. List delayed messages with `rockgate delay list`.\n"
    )
    assert terminal.json("delay", "cancel", "no/0/7", status=1)["errors"][0]["what"] == "no/0/7"


def test_a_remoting_that_is_closed_is_status_3(terminal: Terminal) -> None:
    said = terminal.run("delay", "list", "--broker", "127.0.0.1:1", status=3)
    assert said.startswith("rockgate: Cannot connect to 127.0.0.1:1: ")
    assert "Set its address with --broker or ROCKGATE_BROKER." in said


def test_what_makes_no_sense_is_status_2(terminal: Terminal) -> None:
    for arguments, problem in (
        (("--after", "soon"), "Invalid --after: expected a cursor such as"),
        (("--broker", "a:b:c"), "Invalid --broker: expected HOST:PORT"),
    ):
        said = terminal.run("delay", "list", *arguments, status=2)
        assert said.startswith(f"rockgate: {problem}")


# Records of Kafka's clients


def test_records_that_kafka_s_clients_delay_are_listed_shown_and_taken_back(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name, "-p", "1", "-c", "message.type=DELAY")
    producer = Producer({"bootstrap.servers": wires.server.bootstrap, "compression.type": "zstd"})
    for number in range(3):
        headers = [("TIMER_DELAY_MS", HOUR.encode())] if number else [("plain", b"x")]
        producer.produce(name, f"v{number}", key=f"k{number}", headers=headers, partition=0)
    assert producer.flush(60) == 0
    told = terminal.json("delay", "list", "--topic", name)
    assert [(each["by"], each["waiting"]) for each in told["counts"]] == [("headers", 2)]
    rows = told["messages"]
    assert [(row["id"], row["keys"], row["by"]) for row in rows] == [
        (f"{name}/0/1", "k1", "headers"),
        (f"{name}/0/2", "k2", "headers"),
    ]
    [shown] = terminal.json("delay", "show", f"{name}/0/2")["messages"]
    assert (shown["body"], shown["due_ms"]) == ("v2", rows[1]["due_ms"])
    terminal.run("delay", "cancel", f"{name}/0/1", "--yes")
    left = terminal.json("delay", "list", "--topic", name)["messages"]
    assert [row["keys"] for row in left] == ["k2"]
    # What was never delayed is no message of this kind.
    assert "not found. List delayed messages" in terminal.run(
        "delay", "show", f"{name}/0/0", status=1
    )


def test_what_a_delayed_record_leaves_behind_is_no_lag(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name, "-p", "1", "-c", "message.type=MIXED")
    group = f"g-{name}"
    terminal.run("groups", "reset-offsets", group, "--topic", name, "--to-earliest", "--execute")
    for number in range(10):
        terminal.run("produce", name, str(number), "--header", "TIMER_DELAY_MS=3600000")
    terminal.run("produce", name, "readable")
    [told] = terminal.json("groups", "describe", group)["groups"]
    [line] = told["offsets"]
    assert (line["committed_offset"], line["end_offset"]) == (0, 11)
    assert (line["lag"], line["offset_lag"]) == (1, 11)
    assert (told["lag"], told["offset_lag"]) == (1, 11)
    shown = terminal.run("groups", "describe", group)
    assert "lag          1, plus 10 offsets without readable records" in shown
    [row] = terminal.json("groups", "lag", group)["groups"]
    assert row["topics"] == [{"topic": name, "lag": 1, "offset_lag": 11}]
    # Without the listener that knows, the distance is all there is, as with any other server.
    closed = Terminal(terminal.variables["ROCKGATE_BOOTSTRAP_SERVER"])
    [told] = closed.json("groups", "describe", group)["groups"]
    assert (told["lag"], told["offset_lag"]) == (11, 11)
