"""Names that clients chose are quoted in log lines, and commands print what terminals only show."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import ROOT, parse, python_files

CLIENTS_KEYS = {"group", "topic", "client_id", "origin", "key", "transactional_id", "user"}
"""Keys of log lines whose values are untrusted text."""
_PLACE = re.compile(r"(?:(\w+)=)?%(?:\.\d+)?[a-z]")
_LEVELS = {"debug", "info", "warning", "error", "exception"}
PRINTERS = {"echo.py", "tables.py", "config.py", "delay.py"}
"""Modules of the command line that may print by themselves: of those only what is harmless."""


def unquoted(tree: ast.AST) -> Iterator[str]:
    """Values of a client's key that a log call takes as they are."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in _LEVELS or not node.args:
            continue
        if "log" not in ast.unparse(node.func.value) or not isinstance(node.args[0], ast.Constant):
            continue
        places = _PLACE.findall(str(node.args[0].value))
        for key, value in zip(places, node.args[1:], strict=False):
            is_quoted = isinstance(value, ast.Call) and ast.unparse(value.func) == "quoted"
            if key in CLIENTS_KEYS and not is_quoted:
                yield f"line {node.lineno}: {key}={ast.unparse(value)}"


@pytest.mark.parametrize("path", python_files("gateway"), ids=str)
def test_a_log_line_quotes_what_a_client_chose(path: Path) -> None:
    assert list(unquoted(parse(path))) == []


def test_the_rule_finds_a_value_that_is_not_quoted() -> None:
    tree = ast.parse('log.info("gone group=%s count=%d", name, 3)')
    assert list(unquoted(tree)) == ["line 1: group=name"]
    assert list(unquoted(ast.parse('log.info("gone group=%s", quoted(name))'))) == []


def test_commands_print_by_what_quotes_for_terminals() -> None:
    folder = ROOT / "cli" / "rockgate" / "cli"
    printing = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if path.name not in PRINTERS and re.search(r"typer\.echo\(|\bprint\(", path.read_text())
    }
    assert printing == {"commands/log.py"}, "log.py prints JSON, in ASCII"
