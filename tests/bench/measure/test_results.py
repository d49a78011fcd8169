import json
import math
import socket
from pathlib import Path

import pytest
from bench.measure.race import race, ratio, steps_ms
from bench.measure.results import FOLDER, Bar, Report, write

KEYS = {
    "benchmark",
    "question",
    "command",
    "time",
    "commit",
    "machine",
    "peers",
    "holds",
    "bars",
    "notes",
    "samples",
}


def a_report(measured: float = 0.5) -> Report:
    bar = Bar(name="decode", measured=measured, at_most=0.6, unit="of its time")
    samples = {"decode, us": {"ours": [1.0, 1.25], "theirs": [2.0, 2.5]}}
    return Report(name="toy", question="how fast?", peers={"p": "1"}, samples=samples, bars=[bar])


def test_a_report_is_written_with_all_its_samples_and_the_verdict_of_every_bar(
    tmp_path: Path,
) -> None:
    path = write(a_report(), tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content.keys() == KEYS
    assert content["samples"]["decode, us"]["theirs"] == [2.0, 2.5]
    assert content["holds"] is True
    assert content["bars"] == [
        {"name": "decode", "measured": 0.5, "at_most": 0.6, "unit": "of its time", "holds": True}
    ]


def test_one_bar_that_fails_fails_the_report(tmp_path: Path) -> None:
    report = a_report(0.7)
    assert not report.holds
    assert report.bars[0].line() == "FAILS  decode: 0.7 of its time, at most 0.6"
    assert json.loads(write(report, tmp_path).read_text(encoding="utf-8"))["holds"] is False


def test_a_bar_may_be_a_floor() -> None:
    bar = Bar(name="produce", measured=1.1, at_least=1.2, unit="times Kafka's")
    assert not bar.holds
    assert bar.line() == "FAILS  produce: 1.1 times Kafka's, at least 1.2"
    assert Bar(name="produce", measured=1.2, at_least=1.2, unit="times Kafka's").holds


def test_a_report_names_no_host_and_no_path(tmp_path: Path) -> None:
    text = write(a_report(), tmp_path).read_text(encoding="utf-8")
    assert socket.gethostname() not in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_a_committed_result_says_what_was_measured_where(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content.keys() >= KEYS
    assert path.name.startswith(f"{content['benchmark']}-")
    assert len(content["commit"]) == 40, "measured on a committed tree"
    for bar in content["bars"]:
        low, high = bar.get("at_least", -math.inf), bar.get("at_most", math.inf)
        assert bar["holds"] == (low <= bar["measured"] <= high)


def test_rivals_get_as_many_samples_as_there_are_rounds() -> None:
    samples = race({"a": lambda: None, "b": lambda: sum(range(2000))}, rounds=3)
    assert {name: len(row) for name, row in samples.items()} == {"a": 3, "b": 3}
    assert ratio(samples, "a", "b") < 1


@pytest.mark.parametrize("calm", [False, True])
def test_the_longest_step_of_each_run_is_kept(calm: bool) -> None:
    done: list[str] = []
    samples = steps_ms(
        lambda: iter([lambda: done.append("x"), lambda: done.append("y")]), 4, is_calm=calm
    )
    assert len(samples) == 4
    assert done == ["x", "y"] * 4
