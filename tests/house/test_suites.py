"""The whole run of the clients: no suite stops the others, and none leaves anything running."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from suites import Outcome, Suite, all_suites, note, run_suite
from tests.house.test_compatibility_page import client_folders
from tests.waiting import wait_until


def ran(
    tmp_path: Path, program: str, seconds_max: float = 60, ending_seconds_max: float = 1
) -> Outcome:
    suite = Suite(name="a", path=tmp_path, environ={"SAID": "hello"})
    command = [sys.executable, "-c", program]
    return run_suite(
        suite,
        command,
        os.environ,
        logs=tmp_path,
        seconds_max=seconds_max,
        ending_seconds_max=ending_seconds_max,
    )


def test_every_client_s_folder_is_a_suite() -> None:
    assert client_folders() <= {suite.name for suite in all_suites()}


def test_a_newer_spark_is_a_suite_of_its_own(tmp_path: Path) -> None:
    assert "spark-next" not in {suite.name for suite in all_suites(next_spark=tmp_path / "none")}
    (suite,) = [each for each in all_suites(next_spark=tmp_path) if each.name == "spark-next"]
    assert suite.path.name == "spark"
    assert suite.environ["PYTHONPATH"] == str(tmp_path)


def test_own_suites_are_run_on_apache_kafka_for_their_counts() -> None:
    beside = {suite.name: suite for suite in all_suites() if suite.name.endswith("-on-kafka")}
    assert {"franz-go-on-kafka", "kafka-python-on-kafka", "librdkafka-on-kafka"} <= set(beside)
    for suite in beside.values():
        # With -k nothing is recorded of the client, whose results are those on the server.
        assert suite.arguments == ("-k", "listed_once")
        assert suite.environ == {"ROCKGATE_COMPAT_PEER": "kafka"}


@pytest.mark.parametrize(
    ("status", "outcome"), [(0, "passed"), (1, "failed"), (7, "ended with status 7")]
)
def test_a_suite_ends_with_its_status_and_its_last_line(
    tmp_path: Path, status: int, outcome: str
) -> None:
    found = ran(tmp_path, f"import os; print('== ' + os.environ['SAID'] + ' =='); exit({status})")
    assert (found.outcome, found.last_line) == (outcome, "hello")


def test_a_suite_that_hangs_is_interrupted_and_may_say_what_it_has(tmp_path: Path) -> None:
    """Also where interrupts are ignored, as in what a shell runs in the background."""
    program = (
        "import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print('written'); exit(2)"
    )
    # On a busy machine it takes seconds until the program can be interrupted.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        found = ran(tmp_path, program, seconds_max=5, ending_seconds_max=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.outcome.startswith("interrupted after 5 s")
    assert found.last_line == "written"


def test_a_suite_that_ignores_the_interrupt_is_killed(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    assert ran(tmp_path, program, seconds_max=1).outcome.startswith("killed after 2 s")


def test_what_a_suite_leaves_running_is_killed_and_counted(tmp_path: Path) -> None:
    sleeper = f"[{sys.executable!r}, '-c', 'import time; time.sleep(60)']"
    program = f"import subprocess; print(subprocess.Popen({sleeper}, start_new_session=True).pid)"
    found = ran(tmp_path, program)
    assert found.outcome == "passed, 1 processes left behind"
    pid = int(found.last_line)
    wait_until(lambda: is_gone(pid), "the process is gone")


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_a_run_says_how_far_it_came_and_a_new_one_begins_anew(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"features": [], "clients": {"kept 1": {}}}))
    outcome = Outcome(outcome="passed", seconds=12.4, last_line="")
    note(results, "10:00", "abc", "first", outcome)
    note(results, "10:00", "abc", "second", outcome)
    found = json.loads(results.read_text())
    assert list(found["run"]["suites"]) == ["first", "second"]
    assert found["run"]["suites"]["first"] == {"outcome": "passed", "seconds": 12}
    assert list(found["clients"]) == ["kept 1"]
    note(results, "11:00", "abd", "first", outcome)
    found = json.loads(results.read_text())
    assert found["run"]["began"] == "11:00"
    assert list(found["run"]["suites"]) == ["first"]
