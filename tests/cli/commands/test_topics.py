import pytest
from tests.cli.terminal import Terminal

NEW_YEAR_MS = 1_767_225_600_000


def fill(terminal: Terminal, topic: str, *, seconds: tuple[int, ...]) -> None:
    """Records in partition 0, each that many seconds after 2026 began."""
    data = b"".join(
        b'{"value":"x","partition":0,"timestamp_ms":%d}\n' % (NEW_YEAR_MS + each * 1000)
        for each in seconds
    )
    terminal.pipe("produce", topic, "--jsonl", "--keep-partitions", data=data)


def test_a_topic_from_its_creation_to_its_end(terminal: Terminal, name: str) -> None:
    said = terminal.run("topics", "create", name, "-p", "3", "-c", "retention.ms=60000")
    assert said == f"Created topic {name} with 3 partitions.\n"
    assert terminal.rows("topics", "list", name) == [[name, "3", "1"]]

    said = terminal.run("topics", "alter", name, "-p", "5", "-c", "cleanup.policy=delete")
    assert said == f"Altered topic {name}.\n"
    (topic,) = terminal.json("topics", "describe", name)["topics"]
    assert len(topic["partitions"]) == 5
    assert topic["configs"] == {"cleanup.policy": "delete", "retention.ms": "60000"}
    assert topic["partitions"][4] | {"leader_epoch": 0, "size_bytes": 0} == {
        "partition": 4,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "in_sync": [1],
        "offline": [],
        "start_offset": 0,
        "end_offset": 0,
        "size_bytes": 0,
    }

    terminal.run("topics", "alter", name, "--delete-config", "retention.ms")
    assert terminal.run("topics", "delete", name) == f"Deleted topic {name}.\n"
    assert terminal.rows("topics", "list", name) == []


def test_describe_is_for_people_too(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-p", "2")
    said = terminal.run("topics", "describe", name)
    assert f"topic        {name}\n" in said
    assert "configs      all defaults\n" in said
    assert [line.split()[0] for line in said.splitlines()[-2:]] == ["0", "1"]


def test_topics_go_by_patterns(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", f"{name}-a", f"{name}-b", "-p", "1")
    found = terminal.json("topics", "describe", f"{name}-*")["topics"]
    assert [topic["name"] for topic in found] == [f"{name}-a", f"{name}-b"]
    assert len(terminal.json("topics", "list", f"{name}-?")["topics"]) == 2
    assert terminal.json("topics", "describe", f"{name}-x*", status=1)["topics"] == []


def test_what_is_there_already_is_an_error_unless_that_is_fine(
    terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    said = terminal.run("topics", "create", name, status=1)
    assert said.startswith(f"rockgate: Topic '{name}' already exists ")
    assert "TOPIC_ALREADY_EXISTS" in said and "--if-not-exists" in said
    done = terminal.json("topics", "create", name, f"{name}-2", "--if-not-exists")
    assert [row["is_created"] for row in done["topics"]] == [False, True]


def test_one_of_several_may_fail_and_both_are_reported(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name)
    done = terminal.json("topics", "delete", name, f"{name}-no", status=1)
    assert done["topics"] == [{"name": name, "is_deleted": True}]
    (error,) = done["errors"]
    assert error["what"] == f"topic {name}-no"
    assert (error["error"], error["code"]) == ("UNKNOWN_TOPIC_OR_PARTITION", 3)
    assert terminal.json("topics", "delete", name, "--if-exists")["topics"] == [
        {"name": name, "is_deleted": False}
    ]


def test_a_dry_run_changes_nothing(terminal: Terminal, name: str) -> None:
    said = terminal.run("topics", "create", name, "-p", "3", "--dry-run")
    assert said == f"Dry run: would create topic {name} with 3 partitions.\n"
    assert terminal.rows("topics", "list", name) == []
    terminal.run("topics", "create", name, "-p", "1")
    terminal.run("topics", "alter", name, "-p", "9", "-c", "retention.ms=1", "--dry-run")
    (topic,) = terminal.json("topics", "describe", name)["topics"]
    assert (len(topic["partitions"]), topic["configs"]) == (1, {})


def test_the_servers_words_are_passed_on(terminal: Terminal, name: str) -> None:
    said = terminal.run("topics", "create", name, "-c", "retention.msx=1", status=1)
    assert "retention.msx" in said and "INVALID_CONFIG" in said
    assert "bad/name" in terminal.run("topics", "create", "bad/name", status=1)


def test_offsets_by_place_and_by_time(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-p", "2")
    fill(terminal, name, seconds=(1, 2, 3))
    assert terminal.rows("topics", "offsets", name) == [
        [name, "0", "0", "3", "3"],
        [name, "1", "0", "0", "0"],
    ]
    at = ("--at", "2026-01-01T00:00:02Z")
    assert terminal.rows("topics", "offsets", f"{name}:0", *at) == [
        [name, "0", "1", "2026-01-01T00:00:02.000Z"]
    ]
    (row,) = terminal.json("topics", "offsets", f"{name}:0", "--at", "max-timestamp")["offsets"]
    assert row["offset"] == 2
    said = terminal.run("topics", "offsets", f"{name}:7", status=1)
    assert f"Topic {name} partition 7" in said


def test_the_oldest_records_can_be_deleted(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-p", "1")
    fill(terminal, name, seconds=(1, 2, 3, 4))
    terminal.run("topics", "delete-records", name, "--before-offset", "1")
    assert terminal.rows("topics", "offsets", name) == [[name, "0", "1", "4", "3"]]
    terminal.run("topics", "delete-records", name, "--before-time", "2026-01-01T00:00:03Z")
    assert terminal.rows("topics", "offsets", name) == [[name, "0", "2", "4", "2"]]
    terminal.run("topics", "delete-records", name, "--all")
    assert terminal.rows("topics", "offsets", name) == [[name, "0", "4", "4", "0"]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("topics", "create", "t", "-c", "nothing"),
            "Invalid --config: expected NAME=VALUE, got 'nothing'",
        ),
        (("topics", "alter", "t"), "Nothing to alter"),
        (("topics", "offsets", "t:x"), "Invalid TOPIC: expected TOPIC or TOPIC:0,1,2, got 't:x'"),
        (("topics", "offsets", "t", "--at", "noon"), "Invalid --at: expected a time such as"),
        (("topics", "delete-records", "t"), "Give exactly one of --before-offset"),
        (("topics", "list", "-b", "nowhere:0"), "Invalid --bootstrap-server: expected a port"),
        (("topics", "list", "--timeout", "soon"), "Invalid --timeout: expected a duration"),
    ],
)
def test_what_makes_no_sense_is_status_2(
    terminal: Terminal, arguments: tuple[str, ...], problem: str
) -> None:
    assert terminal.run(*arguments, status=2).startswith(f"rockgate: {problem}")
