import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.server import ROOT, command, environment

from rockgate.gateway.__main__ import SERVER_MODULES

SERVE_FLAGS = {
    "--config",
    "--data-dir",
    "--kafka",
    "--remoting",
    "--namesrv",
    "--http",
    "--advertise-kafka",
    "--advertise-remoting",
    "--set",
    "--log-level",
}


def run(
    *arguments: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env={**environment(variables), "COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_version_is_the_distributions() -> None:
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"rockgate \d+\.\d+\.\d+\S*\n", result.stdout)


def test_help_of_serve_has_every_flag_and_examples() -> None:
    result = run("serve", "--help")
    assert result.returncode == 0
    assert set(re.findall(r"--[a-z-]+", result.stdout)) >= SERVE_FLAGS
    assert "Examples" in result.stdout and "rockgate serve --config" in result.stdout


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert {"serve", "config"} <= set(result.stdout.split())


def test_an_unknown_flag_is_status_2() -> None:
    result = run("serve", "--kafak", "off")
    assert result.returncode == 2
    assert "--kafka" in result.stderr


def test_without_the_server_extra_it_says_what_to_install(tmp_path: Path) -> None:
    """An interpreter that sees the rooms and nothing else is what `pip install rockgate` gives."""
    rooms = [str(ROOT / room) for room in ("gateway", "protocol")]
    code = (
        "import sys\n"
        f"sys.path[:0] = {rooms!r}\n"
        "from rockgate.gateway.__main__ import main\n"
        "main()\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert 'pip install "rockgate[server]"' in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", SERVER_MODULES)
def test_the_modules_looked_for_are_those_of_the_extra(name: str) -> None:
    extra = (ROOT / "pyproject.toml").read_text().split("server = [")[1].split("]")[0]
    assert name.replace("_", "-") in extra
