import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.server import ROOT, command, environment

from rockgate.cli.__main__ import CLI_MODULES, SERVER_COMMANDS, SERVER_MODULES
from rockgate.cli.app.lazy_commands import Deferred
from rockgate.cli.commands import COMMANDS

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
    assert {command.name for command in COMMANDS} <= set(result.stdout.split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_deferred_command_says_what_the_real_one_says(command: Deferred) -> None:
    real = command.load()
    assert real.help is not None and command.help is not None
    assert real.help.splitlines()[0] == command.help


def test_every_command_has_examples_in_its_help() -> None:
    missing = [
        path for path, command in leaves(COMMANDS) if "Examples" not in (command.epilog or "")
    ]
    assert missing == []


def leaves(commands: Iterable[Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that is no group, with the words that lead to it."""
    for each in commands:
        real = each.load() if isinstance(each, Deferred) else each
        name = f"{path} {each.name}".strip()
        if hasattr(real, "commands"):
            yield from leaves(real.commands.values(), name)
        else:
            yield name, real


def test_help_and_completion_import_no_command() -> None:
    code = (
        "import sys; from rockgate.cli.commands import app; from typer.main import get_command;"
        "get_command(app); print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.split())
    assert "rockgate.cli.app.lazy_commands" in loaded
    assert not {name for name in loaded if name.startswith("rockgate.protocol")}
    assert (
        not {"rockgate.cli.commands.topics", "rockgate.gateway.compose.config", "asyncio"} & loaded
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rockgate to", {"topics"}),
        ("rockgate topics de", {"describe", "delete", "delete-records"}),
        ("rockgate consume --from", {"--from-beginning"}),
        ("rockgate produce t --compression z", {"zstd"}),
    ],
)
def test_a_shell_completes_commands_and_flags(words: str, expected: set[str]) -> None:
    result = subprocess.run(
        [Path(sys.executable).with_name("rockgate")],
        env=environment(
            {
                "_ROCKGATE_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(words.count(" ")),
            }
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert set(result.stdout.split()) == expected


def test_completion_can_be_installed(tmp_path: Path) -> None:
    result = run(
        "--install-completion",
        "bash",
        variables={"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert result.returncode == 0, result.stderr
    assert "bash completion installed" in result.stdout
    assert list(tmp_path.glob(".bash*"))


def test_an_unknown_flag_is_status_2() -> None:
    result = run("serve", "--kafak", "off")
    assert result.returncode == 2
    assert "--kafka" in result.stderr


def run_bare(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An interpreter that sees the rooms and nothing else is what `pip install rockgate` gives."""
    rooms = [str(ROOT / room) for room in ("cli", "gateway", "protocol")]
    code = f"import sys\nsys.path[:0] = {rooms!r}\nfrom rockgate.cli.__main__ import main\nmain()\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_without_the_server_extra_help_says_what_there_is_and_what_to_install(
    tmp_path: Path, flag: str
) -> None:
    result = run_bare(tmp_path, flag)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: rockgate COMMAND" in result.stdout
    assert 'pip install "rockgate[server]"' in result.stdout


def test_without_the_server_extra_there_is_a_version(tmp_path: Path) -> None:
    result = run_bare(tmp_path, "--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("rockgate ")


def test_without_the_server_extra_it_says_what_to_install(tmp_path: Path) -> None:
    result = run_bare(tmp_path, "serve")
    assert result.returncode == 2
    assert 'pip install "rockgate[server]"' in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_the_extra_of_commands_it_says_which_one_to_install(tmp_path: Path) -> None:
    result = run_bare(tmp_path, "topics", "list")
    assert result.returncode == 2
    assert 'pip install "rockgate[cli]"' in result.stderr
    assert len(result.stderr.splitlines()) == 1


WITHOUT_SERVER = """
import sys
import importlib.util

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in MODULES else find(name, *rest)
from rockgate.cli.__main__ import main

main()
"""


def run_with_cli_alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT_SERVER.replace("MODULES", repr(SERVER_MODULES))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", SERVER_COMMANDS)
def test_with_the_commands_alone_a_server_says_what_to_install(name: str) -> None:
    result = run_with_cli_alone(name)
    assert result.returncode == 2
    assert 'pip install "rockgate[server]"' in result.stderr


def test_with_the_commands_alone_those_that_ask_a_server_run() -> None:
    result = run_with_cli_alone("topics", "--help")
    assert result.returncode == 0, result.stderr
    assert "describe" in result.stdout


def test_the_modules_looked_for_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        extra: {re.split(r"[<>=]", line)[0] for line in lines}
        for extra, lines in project["optional-dependencies"].items()
    }
    assert set(CLI_MODULES) == extras["cli"]
    assert {"rockgate[cli]", *SERVER_MODULES} <= extras["server"]
