import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rockgate.cli.commands import app
from rockgate.gateway.compose.config import SETTINGS


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.delenv("ROCKGATE_BUDGET", raising=False)
    return CliRunner()


def test_the_table_has_every_setting_with_its_source(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "--set", "num.partitions=8", "--http", "off"])
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines()}
    assert set(SETTINGS) <= set(lines)
    assert lines["topics.partitions"] == ["topics.partitions", "8", "--set", "num.partitions"]
    assert lines["http.listen"] == ["http.listen", "off", "--http"]
    assert lines["kafka.listen"] == ["kafka.listen", "127.0.0.1:9092", "default"]


def test_json_is_for_programs(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rockgate.toml"
    file.write_text("[kafka]\nlisten = '[::1]:19092'\n")
    monkeypatch.setenv("ROCKGATE_TOPICS_AUTO_CREATE", "no")
    result = runner.invoke(app, ["config", "--json", "--config", str(file), "--data-dir", "d"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found) == set(SETTINGS)
    assert found["kafka.listen"] == {"value": "[::1]:19092", "source": f"file {file}"}
    assert found["topics.auto_create"] == {
        "value": False,
        "source": "environment ROCKGATE_TOPICS_AUTO_CREATE",
    }
    assert found["server.data_dir"] == {"value": "d", "source": "--data-dir"}
    assert found["kafka.advertise"] == {"value": None, "source": "default"}
    assert found["topics.partitions"] == {"value": 4, "source": "default"}


def test_changed_leaves_the_defaults_out(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "--changed", "--json", "--log-level", "debug"])
    assert json.loads(result.stdout) == {
        "server.log_level": {"value": "debug", "source": "--log-level"}
    }


def test_the_file_may_be_named_by_the_environment(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rockgate.toml"
    file.write_text("num.partitions = 12\n")
    monkeypatch.setenv("ROCKGATE_CONFIG", str(file))
    result = runner.invoke(app, ["config", "--changed", "--json"])
    assert json.loads(result.stdout)["topics.partitions"]["value"] == 12


def test_problems_go_to_standard_error_one_per_line_and_the_status_is_2(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "--kafka", "nowhere", "--set", "kafka.lisen=x"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "rockgate: Unknown setting 'kafka.lisen' (--set). Did you mean 'kafka.listen'?",
        "rockgate: Setting kafka.listen (--kafka) must be HOST:PORT or 'off', not 'nowhere'.",
    ]
