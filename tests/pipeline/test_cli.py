"""`rockgate pipeline`: flags to jobs, errors to one line, and what it says without Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer, environment
from tests.house.checkout import ROOT
from tests.spark import create_topic, new_topic, numbered, read_topic, send
from tests.waiting import wait_until
from typer.testing import CliRunner

from rockgate.pipeline.cli import app
from rockgate.pipeline.files.archive import parsed, split
from rockgate.pipeline.files.interface import File

JOBS = ("archive", "replay", "mirror", "stats", "dead-letters", "run")
# A site without pyspark: the finder hides it, as if it were not installed.
HIDDEN = """
import importlib.metadata, importlib.util, sys
find, version = importlib.util.find_spec, importlib.metadata.version
importlib.util.find_spec = lambda name, *more: None if name == "pyspark" else find(name, *more)
def hidden(name):
    if name == "pyspark":
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = hidden
sys.modules["pyspark"] = None
"""


def without_pyspark(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"{HIDDEN}\nfrom rockgate.pipeline.cli import main\nmain({list(arguments)!r})"
    environ = environment({"COLUMNS": "200", "TERM": "dumb"})
    return subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60
    )


def rockgate(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rockgate.cli", "pipeline", *arguments]


def test_without_pyspark_the_help_is_there_and_says_what_to_install() -> None:
    done = without_pyspark("--help")
    assert done.returncode == 0, done.stderr
    assert "pyspark is not installed" in done.stdout
    assert "pip install 'rockgate[pipeline]'" in done.stdout
    assert all(job in done.stdout for job in JOBS)


def test_without_pyspark_a_job_ends_with_2_and_says_what_to_install() -> None:
    done = without_pyspark("archive", "--topic", "t", "--into", "x")
    assert done.returncode == 2
    assert "pip install 'rockgate[pipeline]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_examples_in_its_help(job: str) -> None:
    done = CliRunner().invoke(app, [job, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert "Examples" in done.stdout
    assert f"rockgate pipeline {job}" in done.stdout


def test_the_gateway_s_command_finds_the_room_by_its_entry_point() -> None:
    done = subprocess.run(
        rockgate("--help"), env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "measure topics with Spark" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["archive", "--into", "x"], "Give --topic NAME or --pattern REGEX."),
        (
            ["archive", "--into", "x", "--topic", "t", "--pattern", "p"],
            "Give topics by name or by pattern, not both.",
        ),
        (
            ["archive", "--into", "x", "-t", "t", "--merge-bytes", "many"],
            "Invalid --merge-bytes: expected a size such as 64m or 1g, got 'many'.",
        ),
        (
            ["archive", "--into", "x", "-t", "t", "--kafka-option", "acks"],
            "Invalid --kafka-option: expected NAME=VALUE, got 'acks'.",
        ),
        (["archive", "-t", "t", "--into", "/proc/version"], "is a file, expected a directory."),
        (
            ["archive", "-t", "t", "--into", "x", "-b", "nowhere"],
            "expected HOST:PORT, got 'nowhere'.",
        ),
        (["archive", "-t", "t", "--into", "x", "--start", "first"], "Invalid --start 'first': "),
        (
            ["archive", "-t", "t", "--into", "x", "--start", '{"t": 5}'],
            "expected earliest, latest, or",
        ),
        (["replay", "/nope", "--to", "t"], "Invalid ARCHIVE: /nope does not exist."),
        (["stats", "-t", "t"], "Give an output: "),
        (["stats", "-t", "t", "--report", "/nope/page.html"], "directory /nope does not exist."),
        (["stats", "-t", "t", "--into", "x", "--follow"], "--follow requires a --checkpoint."),
        (["dead-letters", "--resend"], "--resend requires a --checkpoint"),
        (["dead-letters", "--delay", "5m"], "--delay requires --resend."),
        (["mirror", "--from", "h:1", "--to", "h:1", "-t", "t", "--checkpoint", "c"], "--rename"),
        (
            ["run", "nomodule:f", "--in", "t", "--out", "o", "--checkpoint", "c"],
            "No module nomodule",
        ),
        (["replay", "a", "--to", "t", "--since", "yesterday"], "--since: expected a time such as"),
        (["replay", "a", "--to", "t", "--delay", "soon"], "--delay: expected a duration such as"),
    ],
)
def test_a_flag_that_makes_no_sense_ends_with_2_before_spark_starts(
    arguments: list[str], told: str, no_spark: None
) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.output


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is asked for is a failure."""

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rockgate.pipeline.cli.runner.open_session", refuse)
    monkeypatch.setattr("rockgate.pipeline.cli.runner.has_session", lambda: False)


JOBS_AND_FLAGS = {
    "archive": ("--topic", "nope", "--into", "x"),
    "stats": ("--topic", "nope", "--into", "x"),
    "run": ("shouting:shout", "--in", "nope", "--out", "o", "--checkpoint", "c"),
}


@pytest.mark.parametrize("job", JOBS_AND_FLAGS)
def test_a_topic_that_is_not_there_is_reported_before_spark_starts(
    job: str,
    server: RunningServer,
    no_spark: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shouting.py").write_text("def shout(records):\n    return records\n")
    words = [job, *JOBS_AND_FLAGS[job], "--bootstrap-server", server.bootstrap]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert f"Topic nope does not exist at {server.bootstrap}" in done.output


@pytest.mark.parametrize("job", [*JOBS_AND_FLAGS, "replay", "mirror", "dead-letters"])
def test_a_server_that_is_not_there_is_reported_before_spark_starts(
    job: str, no_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shouting.py").write_text("def shout(records):\n    return records\n")
    more = {
        "replay": (".", "--to", "t"),
        "mirror": ("--from", "127.0.0.1:2", "--topic", "t", "--checkpoint", "c"),
        "dead-letters": (),
    }
    words = [job, *{**JOBS_AND_FLAGS, **more}[job]]
    done = CliRunner().invoke(app, words, env={"ROCKGATE_BOOTSTRAP_SERVER": "127.0.0.1:1"})
    assert done.exit_code == 1
    assert "Cannot connect to 127.0.0.1:" in done.output


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap", "-b"])
def test_the_flag_wins_over_the_variable(flag: str, no_spark: None) -> None:
    words = ["dead-letters", flag, "127.0.0.1:2"]
    done = CliRunner().invoke(app, words, env={"ROCKGATE_BOOTSTRAP_SERVER": "127.0.0.1:1"})
    assert "Cannot connect to 127.0.0.1:2" in done.output


def test_ctrl_c_before_the_job_began_is_one_line_and_130(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rockgate.pipeline.cli.runner.open_session", interrupt)
    done = CliRunner().invoke(app, ["dead-letters", "-b", server.bootstrap])
    assert done.exit_code == 130
    assert done.output == "rockgate pipeline: Interrupted before the job started.\n"


@pytest.mark.java
@pytest.mark.spark
@pytest.mark.timeout(900)
class TestProcess:
    """Whole processes, as a shell starts them."""

    def test_ctrl_c_in_the_middle_says_so_in_a_line_and_the_next_run_continues(
        self, server: RunningServer, tmp_path: Path
    ) -> None:
        topic = new_topic(server.bootstrap, 2)
        send(server.bootstrap, topic, numbered(4000, 2))
        environ = environment({"SPARK_LOCAL_IP": "127.0.0.1"})
        words = ("archive", "--bootstrap-server", server.bootstrap, "--topic", topic)
        command = rockgate(*words, "--into", "archive", "--step", "400", "--json")
        with (tmp_path / "told").open("w") as told:
            # A shell's Ctrl-C reaches every process of the job, so it has a group of its own.
            job = subprocess.Popen(
                command,
                cwd=tmp_path,
                env=environ,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                wait_until(lambda: steps(tmp_path) >= 1, "a step is done", 240)
                os.killpg(job.pid, signal.SIGINT)
                assert job.wait(120) == 130
            finally:
                if job.poll() is None:
                    os.killpg(job.pid, signal.SIGKILL)
                    job.wait()
        lines = (tmp_path / "told").read_text()
        assert "stopping after this step" in lines
        assert "stopped before the end; run the same command to continue" in lines
        assert "archived to" not in lines
        assert not [line for line in lines.splitlines() if "ERROR" in line or "Traceback" in line]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        assert "archived to" in done.stderr
        parts = parsed(
            File(path=str(path.relative_to(tmp_path / "archive")), size=1)
            for path in (tmp_path / "archive").glob("topic=*/date=*/*.parquet")
        )
        live, _ = split(parts)
        assert sum(part.last + 1 - part.first for part in live) == 4000

    @pytest.mark.long
    def test_a_job_that_follows_stops_at_sigterm_and_loses_and_repeats_nothing(
        self, server: RunningServer, tmp_path: Path
    ) -> None:
        topic = new_topic(server.bootstrap, 2)
        copied = f"copy-{topic}"
        send(server.bootstrap, topic, numbered(2000, 2))
        command = rockgate(
            *("run", "shouting:shout", "--bootstrap", server.bootstrap, "--in", topic),
            *("--out", copied, "--checkpoint", "checkpoint", "--step", "200", "--json"),
        )
        (tmp_path / "shouting.py").write_text(
            "def shout(records):\n    return records.select('key', 'value', 'partition')\n"
        )
        create_topic(server.bootstrap, copied, 2)
        with (tmp_path / "told").open("w") as told:
            environ = environment({"SPARK_LOCAL_IP": "127.0.0.1"})
            job = subprocess.Popen(
                [*command, "--follow", "--every", "0 seconds"],
                cwd=tmp_path,
                env=environ,
                stdout=told,
                stderr=subprocess.STDOUT,
            )
            try:
                wait_until(lambda: steps(tmp_path) >= 2, "two steps are done", 240)
                job.send_signal(signal.SIGTERM)
                assert job.wait(120) == 0
            finally:
                if job.poll() is None:
                    job.kill()
                    job.wait()
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        found = read_topic(server.bootstrap, copied, 2000, 2)
        assert [(m.partition(), m.value()) for m in found] == [
            (p, b"%d" % n) for p in range(2) for n in range(p, 2000, 2)
        ]

    @pytest.mark.long
    def test_the_same_job_runs_under_spark_submit_and_on_a_cluster_of_processes(
        self, server: RunningServer, tmp_path: Path
    ) -> None:
        """local-cluster: the executor is a process of its own."""
        from rockgate.pipeline.spark import connector

        topic = new_topic(server.bootstrap, 2)
        send(server.bootstrap, topic, numbered(100, 2))
        submit = Path(sys.executable).with_name("spark-submit")
        script = ROOT / "pipeline" / "rockgate" / "pipeline" / "submit.py"
        jars = connector.configuration("4.0.0")
        flags = [part for name, value in jars.items() for part in ("--conf", f"{name}={value}")]
        # This session was not configured for small work.
        flags += ["--conf", "spark.sql.shuffle.partitions=2"]
        job = ["archive", "--bootstrap", server.bootstrap, "--topic", topic, "--into", "archive"]
        done = subprocess.run(
            [str(submit), "--master", "local-cluster[1,1,1024]", *flags, str(script), *job],
            cwd=tmp_path,
            env=environment({"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        # spark-submit puts everything that Python says on standard output.
        assert "100 records" in done.stdout + done.stderr
        assert len(list((tmp_path / "archive").glob("topic=*/date=*/*.parquet"))) == 2


def steps(folder: Path) -> int:
    lines = (folder / "told").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return sum(event["event"] == "step" for event in events)


def test_the_jobs_are_there_without_the_server() -> None:
    done = with_hidden("cramjam", "uvloop", "crc32c")
    assert done.returncode == 0, done.stderr
    assert "measure topics with Spark" in done.stdout


def test_with_neither_server_nor_pipeline_it_says_what_to_install() -> None:
    done = with_hidden("cramjam", "uvloop", "typer")
    assert done.returncode == 2
    assert 'pip install "rockgate[pipeline]"' in done.stderr
    assert "Traceback" not in done.stderr


def with_hidden(*modules: str) -> subprocess.CompletedProcess[str]:
    """`rockgate pipeline --help` where these modules cannot be imported."""
    program = f"""
import importlib.util, sys
find, hidden = importlib.util.find_spec, {modules!r}
importlib.util.find_spec = lambda name, *more: None if name in hidden else find(name, *more)
sys.modules.update(dict.fromkeys(hidden))
sys.argv = ["rockgate", "pipeline", "--help"]
from rockgate.cli.__main__ import main
main()
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment({"TERM": "dumb"}),
        capture_output=True,
        text=True,
        timeout=60,
    )
