"""Daemons tried on small Python programs in place of a Java server."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peers.daemon import Daemon, start_tick
from bench.peers.errors import NotReady, NotRunning
from tests.waiting import wait_until

LIVES = (
    "import signal, pathlib; print('up', flush=True); pathlib.Path('up').touch(); signal.pause()"
)
IGNORES = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LIVES}"
ENDS = "print('no room', flush=True); raise SystemExit(3)"
SILENT = "import signal; print('thinking', flush=True); signal.pause()"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon("server", tmp_path / "home")
    yield found
    found.kill()


def start(daemon: Daemon, program: str, seconds_max: float = 20.0) -> None:
    (daemon.directory / "up").unlink(missing_ok=True)
    daemon.start(
        [sys.executable, "-c", program],
        is_ready=(daemon.directory / "up").exists,
        seconds_max=seconds_max,
    )


def test_it_is_started_when_it_answers_and_its_output_is_kept(daemon: Daemon) -> None:
    start(daemon, LIVES)
    assert daemon.pid is not None
    assert daemon.ready_seconds > 0
    daemon.stop()
    assert daemon.pid is None
    assert daemon.log_path.read_text() == "up\n"


def test_one_that_ends_before_it_answers_is_reported_with_its_last_words(daemon: Daemon) -> None:
    with pytest.raises(NotReady, match="server ended with status 3:\nno room"):
        start(daemon, ENDS)
    assert daemon.pid is None


def test_one_that_does_not_answer_in_time_is_ended(daemon: Daemon) -> None:
    with pytest.raises(NotReady, match="server did not answer in time"):
        start(daemon, SILENT, seconds_max=0.2)
    assert daemon.pid is None


def test_it_is_found_and_stopped_by_its_pid_file(daemon: Daemon) -> None:
    start(daemon, LIVES)
    pid = daemon.pid
    assert pid is not None
    other = Daemon("server", daemon.directory)
    assert other.pid == pid
    # Here the child must also be reaped by its parent, so the parent's view ends the wait.
    daemon.stop()
    assert other.pid is None
    other.stop()


def test_it_is_not_started_twice(daemon: Daemon) -> None:
    start(daemon, LIVES)
    with pytest.raises(NotRunning, match=f"server already runs with pid {daemon.pid}"):
        start(daemon, LIVES)


def test_it_can_be_started_again_and_the_log_continues(daemon: Daemon) -> None:
    start(daemon, LIVES)
    daemon.stop()
    start(daemon, LIVES)
    daemon.stop()
    assert daemon.log_path.read_text() == "up\nup\n"


def test_one_that_will_not_end_is_killed(daemon: Daemon) -> None:
    start(daemon, IGNORES)
    daemon.stop(seconds_max=0.2)
    assert daemon.pid is None


def test_one_that_is_held_stands_still_and_then_continues(daemon: Daemon) -> None:
    start(daemon, LIVES)
    with daemon.held():
        wait_until(lambda: state(daemon) == "T", "it stands still")
    wait_until(lambda: state(daemon) != "T", "it goes on")
    daemon.stop()
    with pytest.raises(NotRunning), daemon.held():
        pass


def state(daemon: Daemon) -> str:
    return Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(") ")[2][0]


def test_a_pid_that_belongs_to_someone_else_by_now_is_left_alone(tmp_path: Path) -> None:
    mine = os.getpid()
    tick = start_tick(mine)
    assert tick is not None
    (tmp_path / "server.pid").write_text(json.dumps({"pid": mine, "start_tick": tick - 1}))
    daemon = Daemon("server", tmp_path)
    assert daemon.pid is None
    daemon.kill()
    assert not (tmp_path / "server.pid").exists()


def test_a_process_that_is_gone_has_no_start_tick() -> None:
    assert start_tick(2**22 + 1) is None
