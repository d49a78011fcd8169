from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.waiting import wait_until


@pytest.fixture
def filled(terminal: Terminal, name: str) -> str:
    """A topic with ten records in partition 0 and four in partition 1."""
    terminal.run("topics", "create", name, "-p", "2")
    lines = b'{"value":"x","partition":0}\n' * 10 + b'{"value":"x","partition":1}\n' * 4
    terminal.pipe("produce", name, "--jsonl", "--keep-partitions", data=lines)
    return name


def offsets(terminal: Terminal, group: str) -> dict[int, tuple[int, int]]:
    """Committed offset and lag by partition."""
    (found,) = terminal.json("groups", "describe", group)["groups"]
    return {x["partition"]: (x["committed_offset"], x["lag"]) for x in found["offsets"]}


def reset(terminal: Terminal, group: str, *arguments: str) -> dict[int, int]:
    """Do it; the new offset of each partition."""
    done = terminal.json("groups", "reset-offsets", group, *arguments, "--execute")
    assert done["is_executed"]
    return {row["partition"]: row["new_offset"] for row in done["offsets"]}


def test_a_reset_is_shown_first_and_done_on_demand(terminal: Terminal, filled: str) -> None:
    group = f"g-{filled}"
    arguments = ("groups", "reset-offsets", group, "--topic", filled, "--to-earliest")
    assert terminal.rows(*arguments) == [
        [filled, "0", "-", "0", "10"],
        [filled, "1", "-", "0", "4"],
    ]
    assert "GROUP_ID_NOT_FOUND" in terminal.run("groups", "describe", group, status=1)
    assert not terminal.json(*arguments)["is_executed"]
    terminal.run(*arguments, "--execute")
    assert offsets(terminal, group) == {0: (0, 10), 1: (0, 4)}


def test_every_way_to_reset(terminal: Terminal, filled: str, tmp_path: Path) -> None:
    group, both = f"g-{filled}", ("--topic", filled)
    assert reset(terminal, group, *both, "--to-latest") == {0: 10, 1: 4}
    assert reset(terminal, group, *both, "--to-offset", "6") == {0: 6, 1: 4}
    assert reset(terminal, group, "--all-topics", "--shift-by", "-3") == {0: 3, 1: 1}
    assert reset(terminal, group, "--topic", f"{filled}:0", "--shift-by", "100") == {0: 10}
    assert reset(terminal, group, *both, "--to-datetime", "2020-01-01") == {0: 0, 1: 0}
    assert reset(terminal, group, *both, "--to-datetime", "2100-01-01") == {0: 10, 1: 4}
    assert reset(terminal, group, *both, "--by-duration", "P30D") == {0: 0, 1: 0}
    assert reset(terminal, group, *both, "--to-current") == {0: 0, 1: 0}
    file = tmp_path / "offsets.csv"
    file.write_text(f'{filled},0,5\n\n"{filled}",1,2\n')
    assert reset(terminal, group, "--from-file", str(file)) == {0: 5, 1: 2}
    exported = terminal.run(
        "groups", "reset-offsets", group, "--all-topics", "--to-current", "--export"
    )
    assert exported == f"{filled},0,5\n{filled},1,2\n"


def test_a_group_with_members_is_not_moved(terminal: Terminal, filled: str) -> None:
    group = f"g-{filled}"
    with terminal.start("consume", filled, "--group", group) as process:
        wait_until(lambda: state(terminal, group) == "Stable", "the group is stable")
        arguments = ("groups", "reset-offsets", group, "--topic", filled, "--to-latest")
        said = terminal.run(*arguments, "--execute", status=1)
        assert "only be reset while the group has no members; it is Stable with 1 member" in said
        assert "NON_EMPTY_GROUP" in terminal.run("groups", "delete", group, status=1)
        (found,) = terminal.json("groups", "members", group)["groups"]
        (member,) = found["members"]
        assert member["client_id"] == "rockgate"
        assert [each["partition"] for each in member["assignment"]] == [0, 1]
        assert f"{filled}:0,1" in terminal.run("groups", "members", group)
        process.terminate()
        assert process.wait(60) == 0
        process.communicate()
    assert state(terminal, group) == "Empty"
    assert terminal.run("groups", "delete", group) == f"Deleted group {group}.\n"


def state(terminal: Terminal, group: str) -> str | None:
    listed = terminal.json("groups", "list")["groups"]
    return next((each["state"] for each in listed if each["group"] == group), None)


def test_groups_are_listed_with_state_and_lag(terminal: Terminal, filled: str) -> None:
    group = f"g-{filled}"
    reset(terminal, group, "--topic", filled, "--to-offset", "2")
    assert [group, "classic", "Empty"] in [row[:3] for row in terminal.rows("groups", "list")]
    listed = terminal.json("groups", "list", "--state", "stable")["groups"]
    assert group not in [each["group"] for each in listed]
    assert terminal.rows("groups", "lag", group) == [[group, "Empty", filled, "10", "10"]]
    (row,) = terminal.rows("groups", "state", group)
    assert row[:3] == [group, "classic", "Empty"]
    said = terminal.run("groups", "describe", group)
    assert "lag          10\n" in said
    assert [line.split()[:5] for line in said.splitlines()[-2:]] == [
        [filled, "0", "2", "10", "8"],
        [filled, "1", "2", "4", "2"],
    ]


def test_what_is_committed_for_a_topic_can_be_forgotten(terminal: Terminal, filled: str) -> None:
    group = f"g-{filled}"
    reset(terminal, group, "--topic", filled, "--to-latest")
    terminal.run("groups", "delete-offsets", group, "--topic", f"{filled}:0")
    assert offsets(terminal, group) == {1: (4, 0)}
    terminal.run("groups", "delete-offsets", group, "--topic", filled)
    said = terminal.run("groups", "reset-offsets", group, "--all-topics", "--to-latest")
    assert said == ""


def test_a_partition_that_is_not_there_resets_nothing(terminal: Terminal, filled: str) -> None:
    group = f"g-{filled}"
    arguments = ("groups", "reset-offsets", group, "--topic", f"{filled}:0,9", "--to-latest")
    done = terminal.json(*arguments, "--execute", status=1)
    assert not done["is_executed"]
    assert [error["what"] for error in done["errors"]] == [f"topic {filled} partition 9"]
    assert "GROUP_ID_NOT_FOUND" in terminal.run("groups", "describe", group, status=1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--topic", "t"), "Give exactly one of --to-earliest"),
        (("--to-earliest", "--to-latest", "--topic", "t"), "Give exactly one of --to-earliest"),
        (("--to-earliest",), "Give either --topic TOPIC (repeatable) or --all-topics."),
        (("--to-earliest", "--all-topics", "--topic", "t"), "Give either --topic TOPIC"),
        (("--to-datetime", "noon", "--all-topics"), "Invalid --to-datetime: expected a time"),
        (("--from-file", "nowhere.csv"), "Invalid --from-file: cannot read it: "),
        (("--to-latest", "--all-topics", "--export", "--execute"), "--export cannot be"),
    ],
)
def test_a_reset_that_makes_no_sense_is_status_2(
    terminal: Terminal, arguments: tuple[str, ...], problem: str
) -> None:
    said = terminal.run("groups", "reset-offsets", "g", *arguments, status=2)
    assert said.startswith(f"rockgate: {problem}")


def test_a_file_is_read_by_lines_and_the_bad_one_is_named(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,5\nt,zero,5\n")
    said = terminal.run("groups", "reset-offsets", "g", "--from-file", str(file), status=2)
    assert said == (
        "rockgate: Invalid --from-file: line 2: expected topic,partition,offset, got 't,zero,5'.\n"
    )


def test_a_name_that_a_terminal_would_obey_is_shown_and_not_obeyed(
    terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    evil = f"{name}\n\x1b[2J\u202e\x9b"
    reset = ("groups", "reset-offsets", evil, "--topic", name, "--to-earliest")
    terminal.run(*reset, "--execute")
    told = [
        terminal.run("groups", "list"),
        terminal.run("groups", "describe", evil),
        terminal.run("groups", "lag", evil),
        terminal.run("groups", "list", "--json"),
        terminal.run("groups", "describe", f"{evil}-no", status=1),
    ]
    for output in told:
        assert rf"{name}\n" in output
        assert evil not in output
        assert all(line.isprintable() for line in output.split("\n")), output
    assert evil in [each["group"] for each in terminal.json("groups", "list")["groups"]]
    terminal.run("groups", "delete", evil, "--yes")
