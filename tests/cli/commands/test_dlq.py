"""Dead letters through a real server: listed, described, and resent to their topics, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cli.terminal import Terminal
from tests.cli.two_listeners import BothWires, both_wires
from tests.gateway.remoting.client import messages
from typer.testing import CliRunner

from rockgate.cli.client.remoting import dead_letters as wire
from rockgate.cli.commands import app
from rockgate.protocol.remoting.message import Message

SEND_BACK = 36
DEAD_AT_ONCE = -1
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("dlq")) as running:
        yield running


@pytest.fixture
def terminal(wires: BothWires) -> Terminal:
    return wires.terminal


def bury(wires: BothWires, message: Message, group: str) -> None:
    """Let a consumer give up a message that it got."""
    fields = {
        "offset": message.position,
        "group": group,
        "delayLevel": DEAD_AT_ONCE,
        "originTopic": message.topic,
    }
    answer = wires.client.ask(SEND_BACK, fields)
    assert answer.code == 0, answer.remark


def dead(wires: BothWires, topic: str, group: str, *bodies: str) -> None:
    """Send messages with RocketMQ's client, and bury them all."""
    for body in bodies:
        given = {"UNIQ_KEY": f"{topic}-{body}", "KEYS": body, "TAGS": "red", "colour": "blue"}
        assert wires.client.publish(topic, body.encode(), queue=1, properties=given).code == 0
    for message in messages(wires.client.pull(topic, queue=1)):
        bury(wires, message, group)


def lying(wires: BothWires, topic: str, queue: int) -> list[Message]:
    return messages(wires.client.pull(topic, queue=queue))


def test_groups_with_dead_letters_are_listed_with_counts_and_ages(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a", "b")
    [row] = [
        each for each in terminal.json("dlq", "list")["queues"] if each["group"] == f"g-{name}"
    ]
    assert (row["queue"], row["messages"], row["start_offset"], row["end_offset"]) == (0, 2, 0, 2)
    assert 0 < row["oldest_ms"] <= row["newest_ms"]
    assert [f"g-{name}", "0", "2"] in [row[:3] for row in terminal.rows("dlq", "list")]


def test_dead_letters_say_where_they_came_from_and_pass_filters(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a", "b", "c")
    listed = ("dlq", "list", f"g-{name}")
    told = terminal.json(*listed)
    assert [each["keys"] for each in told["dead_letters"]] == ["a", "b", "c"]
    first = told["dead_letters"][0]
    assert (first["id"], first["topic"], first["queue"]) == (f"g-{name}/0/0", name, 1)
    assert (first["offset"], first["reason"], first["is_resent"]) == (0, "asked", False)
    assert (first["message_id"], first["reconsume_times"]) == (f"{name}-a", 1)
    assert first["failed_ms"] <= first["dead_ms"]

    def ids(*flags: str) -> list[str]:
        return [each["keys"] for each in terminal.json(*listed, *flags)["dead_letters"]]

    assert ids("--key", "b") == ["b"]
    assert ids("--topic", "another") == ids("--reason", "tries") == []
    assert ids("--since", str(first["dead_ms"] + 86_400_000)) == []
    assert ids("--until", str(first["dead_ms"] + 86_400_000)) == ["a", "b", "c"]
    page = terminal.json(*listed, "--limit", "2")
    assert [each["keys"] for each in page["dead_letters"]] == ["a", "b"]
    assert ids("--from", str(page["next"])) == ["c"]
    # The group's topic is as good a name as the group, in the words of either side.
    for alias in (f"%DLQ%g-{name}", f"rmq.dlq.g-{name}"):
        assert len(terminal.json("dlq", "list", alias)["dead_letters"]) == 3


def test_a_dead_letter_is_shown_whole(wires: BothWires, terminal: Terminal, name: str) -> None:
    dead(wires, name, f"g-{name}", "a")
    [shown] = terminal.json("dlq", "show", f"g-{name}/0/0")["dead_letters"]
    assert (shown["body"], shown["tags"], shown["topic"]) == ("a", "red", name)
    assert {"name": "colour", "value": "blue"} in shown["properties"]
    lines = terminal.run("dlq", "show", f"g-{name}/0/0").splitlines()
    assert ["origin", name, "(queue/offset", "1/0)"] in [line.split() for line in lines]
    said = terminal.run("dlq", "show", f"g-{name}/0/9", "nobody/0/0", status=1)
    assert f"g-{name}/0/9: not found. List dead letters with" in said
    assert "Group 'nobody' has no dead letters in queue 0" in said


def test_a_dead_letter_is_sent_back_as_it_was_and_only_once(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a")
    [before] = lying(wires, name, 1)
    said = terminal.run("dlq", "resend", f"g-{name}/0/0", "--yes")
    assert said == f"Resent g-{name}/0/0 as {name}/1/1.\n"
    [_, after] = lying(wires, name, 1)
    assert (after.body, after.born_ms, after.reconsume_times) == (b"a", before.born_ms, 0)
    assert after.properties == {**before.properties, "__RESENT_FROM": f"g-{name}/0/0"}
    told = terminal.json("dlq", "resend", f"g-{name}/0/0", status=1)
    assert told["dead_letters"][0]["is_resent"] is False
    assert "already resent. Use --again" in told["errors"][0]["message"]
    assert len(lying(wires, name, 1)) == 2
    [row] = terminal.json("dlq", "list", f"g-{name}")["dead_letters"]
    assert row["is_resent"] is True
    again = terminal.json("dlq", "resend", f"g-{name}/0/0", "--again")
    assert again["dead_letters"] == [
        {"id": f"g-{name}/0/0", "is_resent": True, "topic": name, "queue": 1, "offset": 2}
    ]


def test_what_was_sent_again_is_remembered_across_a_kill(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with both_wires(tmp_path_factory.mktemp("killed")) as wires:
        dead(wires, "orders", "g", "a", "b")
        wires.terminal.run("dlq", "resend", "g/0/1", "--yes")
        wires.client.socket.close()
        wires.server.kill()
        wires.server.restart()
        listed = wires.terminal.json("dlq", "list", "g")["dead_letters"]
        assert [each["is_resent"] for each in listed] == [False, True]
        sent = wires.terminal.json("dlq", "resend", "--group", "g", "--all")["dead_letters"]
        assert [each["id"] for each in sent] == ["g/0/0"]


def test_all_or_some_of_a_group_are_sent_and_a_second_run_sends_nothing(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a", "b", "c")
    resend = ("dlq", "resend", "--group", f"g-{name}")
    said = terminal.run(*resend, "--key", "b", "--dry-run")
    assert said == f"Would resend g-{name}/0/1 to {name}/1.\n"
    assert len(lying(wires, name, 1)) == 3
    terminal.run(*resend, "--key", "b", "--yes")
    assert [message.body for message in lying(wires, name, 1)][3:] == [b"b"]
    sent = terminal.json(*resend, "--all")["dead_letters"]
    assert [each["id"] for each in sent] == [f"g-{name}/0/0", f"g-{name}/0/2"]
    assert terminal.json(*resend, "--all")["dead_letters"] == []
    assert len(lying(wires, name, 1)) == 6


def test_a_record_of_a_kafka_batch_comes_back_with_key_headers_and_null(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    producer = Producer({"bootstrap.servers": wires.server.bootstrap, "compression.type": "zstd"})
    for number in range(3):
        headers = [("h", b"\x00\xff"), ("h", None), ("n", str(number).encode())]
        producer.produce(name, None, key=b"\x00key", headers=headers, partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    bury(wires, messages(wires.client.pull(name))[1], f"g-{name}")
    terminal.run("dlq", "resend", f"g-{name}/0/0", "--yes")

    def records() -> list[dict[str, Any]]:
        lines = terminal.pipe("consume", name, "--exit-at-end", "--json").splitlines()
        return [json.loads(line) for line in lines]

    [_, first, _, again] = records()
    for part in ("key", "key_base64", "value", "value_base64", "timestamp_ms"):
        assert again.get(part) == first.get(part)
    headers = [each for each in again["headers"] if not each["key"].startswith(("__RES", "UNIQ"))]
    assert headers == first["headers"]


def test_a_topic_that_is_gone_is_said_so_and_another_may_be_given(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a")
    terminal.run("topics", "delete", name, "--yes")
    told = terminal.json("dlq", "resend", f"g-{name}/0/0", status=1)
    assert told["errors"][0]["error"] == "TOPIC_NOT_EXIST"
    terminal.run("topics", "create", f"{name}-b")
    told = terminal.json("dlq", "resend", f"g-{name}/0/0", "--to", f"{name}-b")
    assert told["dead_letters"][0]["topic"] == f"{name}-b"


def test_what_makes_no_sense_is_status_2(terminal: Terminal) -> None:
    for arguments, problem in (
        ((), "Give ids, or --group"),
        (("g/0/0", "--group", "g"), "Give ids, or --group"),
        (("g/0/0", "--all"), "Ids cannot be combined with --all or filters"),
        (("--group", "g"), "--group requires --all or a filter"),
        (("--group", "g", "--all", "--key", "k"), "--group requires --all or a filter"),
        (("g",), "Invalid ID: expected GROUP/QUEUE/OFFSET"),
        (("--group", "g", "--since", "once"), "Invalid --since: expected a time"),
    ):
        said = terminal.run("dlq", "resend", *arguments, status=2)
        assert said.startswith(f"rockgate: {problem}"), said


def test_a_group_that_no_one_knows_is_reported_and_one_without_dead_letters_is_not(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    said = terminal.run("dlq", "list", f"no-{name}", status=1)
    assert f"Group 'no-{name}' does not exist" in said
    told = terminal.json("dlq", "list", f"no-{name}", status=1)
    assert told["errors"][0]["error"] == "SUBSCRIPTION_GROUP_NOT_EXIST"
    terminal.run("topics", "create", name)
    reset = ("groups", "reset-offsets", f"g-{name}", "--topic", name, "--to-earliest")
    terminal.run(*reset, "--execute")
    assert terminal.run("dlq", "list", f"g-{name}") == "", "that there are none is a note"
    assert terminal.json("dlq", "list", f"g-{name}")["dead_letters"] == []


def test_a_dry_run_refuses_what_the_run_would_refuse_and_sends_nothing(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    dead(wires, name, f"g-{name}", "a", "b")
    for ids, flags in (
        ((f"g-{name}/0/0",), ("--to", f"{name}-nowhere")),
        ((f"g-{name}/0/99",), ()),
        ((f"g-{name}/7/0",), ()),
        ((f"none-{name}/0/0",), ()),
    ):
        resend = ("dlq", "resend", *ids, *flags)
        dry = terminal.json(*resend, "--dry-run", status=1)
        assert dry == terminal.json(*resend, "--yes", status=1)
        assert dry["errors"]
    terminal.run("dlq", "resend", f"g-{name}/0/0", "--yes")
    again = terminal.json("dlq", "resend", f"g-{name}/0/0", "--dry-run", status=1)
    assert "already resent" in again["errors"][0]["message"]
    before = len(lying(wires, name, 1))
    told = terminal.json("dlq", "resend", f"g-{name}/0/1", "--dry-run")
    [one] = told["dead_letters"]
    assert (one["topic"], one["is_resent"], one["offset"]) == (name, False, None)
    assert len(lying(wires, name, 1)) == before


def test_whoever_breaks_off_is_told_what_was_sent_again_and_can_continue(
    wires: BothWires, terminal: Terminal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(wires, name, f"g-{name}", "a", "b", "c")
    resend, asked = wire.resend, 0

    async def broken_off(*given: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return await resend(*given, **more)

    monkeypatch.setattr(wire, "resend", broken_off)
    command = ("dlq", "resend", "--group", f"g-{name}", "--all", "--yes")
    result = CliRunner(env=terminal.variables).invoke(app, list(command))
    assert result.exit_code == 130
    sent = [line.split(" as ")[0] for line in result.stdout.splitlines()]
    assert sent == [f"Resent g-{name}/0/0", f"Resent g-{name}/0/1"]
    said = "rockgate: Interrupted after 2 of 3. Run the same command to resend the rest.\n"
    assert result.stderr == said
    assert terminal.run(*command).startswith(f"Resent g-{name}/0/2 as ")
