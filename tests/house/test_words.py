"""What users read is in the words of the field: help, output, errors and their advice.

Looked at is every string of a room that is no docstring, as long as it holds a space: what has none
is a name. Docstrings of commands are help texts, so they count.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.house.checkout import ROOT

ROOMS = ("cli", "console", "sdk", "pipeline")
COMMANDS = ("cli/rockgate/cli/commands", "pipeline/rockgate/pipeline/cli")
"""Folders where a public function's docstring is what `--help` prints."""

HOME_MADE = (r"doors?", r"desks?", r"twins?", r"(?<!machine )rooms?")
"""Nouns that only this project has; a machine room is RocketMQ's own word."""

ODD = (
    r"makes? no sense",
    r"\bmeant\b",
    r"\bmay be$",
    r"\btook back\b",
    r"\bso (long|many)\b",
    r"\b(is|are) (not )?there\b(?! a\b)",
    r"\bany more\b",
    r"\bsa(ys|id) no\b",
    r"\bwants\b",
    r"\bgoes (by|with|on)\b",
    r"\bgoing on\b",
    r"\bbroken off\b",
    r"\b[Ww]ho must\b",
    r"\bfor programs\b",
    r"\ba line\b",
    r"\btold\b",
    r"\bkept\b",
    r"\bthe very\b",
    r"\bof Kafka's\b",
    r"\bthe same words\b",
    r"\bshall\b",
    r"\bknows? no\b",
    r"\bnothing (waits|hangs)\b",
    r"\ball the same\b",
    r"\basks first\b",
    r"\bcould be \w+ed\b",
    r"\bthe begin of\b",
    r"\bnobody\b",
    r"\bsomebody\b",
    r"(?<!there )\bis no [a-z]",
)
"""Turns of phrase that no engineer of this field would use."""

_BANNED = re.compile("|".join((rf"\b({'|'.join(HOME_MADE)})\b", *ODD)), re.IGNORECASE)


class Text(NamedTuple):
    """A string that a user may read, and where it stands."""

    path: str
    line: int
    text: str


def texts_of(source: str, path: str) -> Iterator[Text]:
    """The user-visible strings of a module; what is put into an f-string stands as `{}`."""
    tree = ast.parse(source)
    asides = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    if path.startswith(COMMANDS):
        asides -= {id(each) for each in _helps(tree)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if id(node) in asides | parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield Text(path, node.lineno, text)


def _helps(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def problems(texts: Iterator[Text]) -> list[str]:
    """Each string that uses a banned word or phrase."""
    return [
        f"{each.path}:{each.line}: {found[0]!r} in {each.text!r}"
        for each in texts
        if (found := _BANNED.search(each.text)) is not None
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_what_users_read_is_in_the_words_of_the_field(room: str) -> None:
    files = sorted(Path(ROOT, room, "rockgate").rglob("*.py"))
    assert files
    found = [
        problem
        for file in files
        for problem in problems(texts_of(file.read_text(), str(file.relative_to(ROOT))))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        'raise ValueError("no dead letter is meant by this")',
        'raise ValueError(f"the body has {size} bytes, {most} may be")',
        'say("2: the command line makes no sense")',
        'option(help="Leave out what transactions took back.")',
        'option(help="Stop after so many.")',
        'say(f"{name} is not there")',
        'say("Kafka\'s door is open")',
        'say("how much room there is")',
    ],
)
def test_an_odd_phrase_is_found(line: str) -> None:
    assert len(problems(texts_of(line, "cli/x.py"))) == 1


def test_the_docstring_of_a_command_is_help_and_others_are_not() -> None:
    source = '"""A door."""\ndef run():\n    """Say what a desk shall do."""\n'
    assert problems(texts_of(source, "cli/rockgate/cli/text/x.py")) == []
    [found] = problems(texts_of(source, "cli/rockgate/cli/commands/x.py"))
    assert "'desk'" in found


def test_names_and_plain_words_are_let_through() -> None:
    for line in ('x = "door"', 'x = "List topics with `rockgate topics list`."'):
        assert problems(texts_of(line, "cli/x.py")) == []
