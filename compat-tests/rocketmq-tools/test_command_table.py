"""The table of mqadmin's commands, checked by what both sides print, and its recorded results."""

import json
from pathlib import Path

import pytest
from behaviours import command_table
from behaviours.command_table import Row, Side
from bench.peers import jars, rocketmq
from docs import compatibility

CLIENT = f"rocketmq-tools {jars.version(rocketmq.NAME)}"
pytestmark = pytest.mark.feature("every command has the outcome of the table", "mqadmin")
TRACE = "org.apache.rocketmq.tools.command.SubCommandException: failed\n\tat java.lang.Thread\n"


def judged(row: Row, theirs: str, ours: str) -> list[str]:
    sides = [
        Side(values={"name": name}, printed=[printed])
        for name, printed in (("broker-a", theirs), ("rockgate", ours))
    ]
    return command_table.faults(row, *sides, 0)


def test_the_same_is_what_both_print_with_their_own_names() -> None:
    row = Row(run="topicList", shows=("<name> +4",))
    assert judged(row, "broker-a  4", "rockgate 4") == []
    assert judged(row, "broker-a  4", "broker-a 4") == ["rockgate does not print 'rockgate +4'"]
    assert judged(row, "broker-a  4", f"rockgate 4\n{TRACE}") == ["rockgate fails"]


def test_a_refusal_of_ours_needs_its_text_and_the_brokers_success() -> None:
    row = Row(run="x", outcome="refused", theirs=("done",), ours=("because",), why="w")
    assert judged(row, "done", f"{TRACE}because") == []
    assert judged(row, f"done\n{TRACE}", "because") == ["the broker fails"]
    assert judged(row, "done", TRACE) == ["rockgate does not print 'because'"]


def test_words_that_only_end_like_an_error_are_none() -> None:
    row = Row(run="x", shows=("delay",))
    assert judged(row, "delayWhenException : 1", "pullDelayWhenException : delay") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": "fine", "shows": ("x",)},
        {"outcome": "same"},
        {"outcome": "refused", "ours": ("x",), "theirs": ("x",)},
        {"outcome": "neither", "shows": ("x",)},
    ],
)
def test_a_row_without_an_expectation_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"^x: "):
        Row(run="x", **wrong)


@pytest.mark.parametrize(("line", "version", "count"), [("5", "5.5.0", 96), ("4", "4.9.7", 57)])
def test_the_results_are_those_of_the_table_and_all_hold(
    line: str, version: str, count: int
) -> None:
    rows = command_table.load(line)
    assert len({row.command for row in rows}) == count
    results = json.loads(command_table.RESULTS.read_text(encoding="utf-8"))
    found = {(each["run"], each["outcome"]) for each in results[version]["rows"]}
    assert found == {(row.run, row.outcome) for row in rows}


def test_a_version_that_was_run_replaces_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    row = Row(run="topicList -c", shows=("x",))
    command_table.record("4.9.7", [(row, [])], "2026-01-01", path)
    command_table.record("5.5.0", [(row, ["rockgate fails"])], "2026-01-02", path)
    page = list(compatibility.command_lines(compatibility.load_commands(path)))
    assert "- 5.5.0: 1 commands, 2026-01-02" in page
    assert page[-1] == "| `topicList` | fails | same | rockgate fails |"
