"""Names in code are words of the field: none is one that only this project used."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.house.checkout import SOURCE_ROOMS, parse, python_files

HOME_MADE = frozenset(
    [
        "beaten",
        "believed",
        "complaint",
        "desk",
        "desks",
        "digging",
        "door",
        "doors",
        "dug",
        "gathering",
        "helds",
        "homeless",
        "kept",
        "loser",
        "lying",
        "mendable",
        "mute",
        "nobody",
        "politely",
        "shown",
        "somehow",
        "strangely",
        "teller",
        "telling",
        "tenancy",
        "told",
        "twin",
        "twins",
        "untold",
        "warmth",
        "welcome",
        "whens",
        "wish",
        "wished",
        "wishes",
    ]
)
"""Say admin, listener, cached or retained, visible or described, and so on: what the thing is."""

PHRASES = ("bring_in", "go_on", "going_on", "gone_on", "hear_no_more", "let_go")
"""Several words together: say load, release, advance or continue."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a module defines or uses, and the line."""
    for node in ast.walk(tree):
        for field in ("name", "asname", "id", "attr", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


def is_home_made(name: str) -> bool:
    """Whether a home-made word or phrase is in it."""
    words = [word.lower() for word in _WORD.findall(name)]
    joined = f"_{'_'.join(words)}_"
    return not HOME_MADE.isdisjoint(words) or any(f"_{each}_" in joined for each in PHRASES)


def problems(tree: ast.AST) -> set[tuple[int, str]]:
    """The names with a home-made word or phrase in them."""
    return {(line, name) for line, name in names_of(tree) if is_home_made(name)}


@pytest.mark.parametrize("room", [*SOURCE_ROOMS, "bench"])
def test_no_name_of_a_room_is_a_home_made_word(room: str) -> None:
    files = python_files(room)
    assert files
    found = {
        f"{path}:{line}: {name}" for path in files for line, name in sorted(problems(parse(path)))
    }
    found |= {str(path) for path in files if not HOME_MADE.isdisjoint(_WORD.findall(str(path)))}
    assert found == set()


@pytest.mark.parametrize(
    "line",
    [
        "kept = 1",
        "def is_shown(): pass",
        "class KeptQuotas: pass",
        "KEPT_SIZE_MAX = 1",
        "Groups(shown=1)",
        "self._kept.clear()",
        "from x import shown as seen",
        "f'{kept!r}'",
        "lambda kept_bytes: 1",
        "self._let_go()",
        "def letGo(): pass",
    ],
)
def test_a_home_made_word_is_found(line: str) -> None:
    assert len(problems(ast.parse(line))) == 1


def test_words_that_only_hold_one_are_let_through() -> None:
    assert problems(ast.parse("indoors = showing = keeping = BookkeptX = 1")) == set()
