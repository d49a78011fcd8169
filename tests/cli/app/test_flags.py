"""What `--help` shows of every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from rockgate.cli.commands import COMMANDS, app


def commands() -> Iterator[tuple[str, ...]]:
    """Every command of the gateway, and every one below."""
    yield ()
    for each in COMMANDS:
        assert each.name is not None
        yield (each.name,)
        for below in getattr(each.load(), "commands", {}):
            yield (each.name, below)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_no_flag_has_a_type_in_the_help(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*words, "--help"])
    assert told.exit_code == 0
    assert "--help" in told.stdout
    assert "bool" not in told.stdout.lower()


def test_commands_of_other_rooms_have_none_either() -> None:
    root: Any = get_command(app)
    context = root.make_context("rockgate", ["pipeline"], resilient_parsing=True)
    pipeline = root.get_command(context, "pipeline")
    assert pipeline is not None
    below = pipeline.make_context("pipeline", ["archive"], resilient_parsing=True)
    archive = pipeline.commands["archive"]
    flags = [each for each in archive.get_params(below) if getattr(each, "is_flag", False)]
    assert flags
    assert all(each.metavar == "" for each in flags)
