"""Docstrings and comments are in the words of the field, as far as a machine can tell.

test_words and test_server_words check what users read, and test_doc_words the pages.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import ROOT

FOLDERS = (
    "bench",
    "cli",
    "compat-tests",
    "console",
    "docs",
    "gateway",
    "pipeline",
    "protocol",
    "sdk",
    "store/rockgate",
    "tests",
)

PHRASES = (
    r"doors?",
    r"desks?",
    r"twins?",
    r"(no|some|every|any)body",
    r"shall",
    r"any ?more",
    r"at present",
    r"for ever",
    r"all the same",
    r"(the|this) very(?! (large|long|many))",
    r"so (long|many|much)",
    r"go(es|ing)? on",
    r"in front of",
    r"kept( aside)?",
    r"shown",
    r"(is|are|was|were|be) told",
    r"told of",
    r"let(s|ting)? go",
    r"hand(s|ed|ing)? out",
    r"(bring|brings|brought|bringing) in",
    r"hangs? (on|up)",
    r"takes? (it|one change|one batch entry|them|a slice) in",
    r"what (waits|waited|lies)",
    r"waits? for its time",
    r"as (it|they) lies?",
    r"(an earlier|its|that|the topic's) life",
    r"put (off|aside)",
    r"is no longer there|is not there",
    r"looks? at",
)
"""Turns of phrase that engineers of this field do not use."""

_BANNED = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring, string under an attribute and run of comment lines, with its first line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    last = -1
    comment: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and comment:
            yield last - len(comment) + 1, "\n".join(comment)
            comment = []
        last = token.start[0]
        comment.append(token.string.lstrip("# "))
    if comment:
        yield last - len(comment) + 1, "\n".join(comment)


def problems(source: str) -> Iterator[str]:
    """Each banned phrase, with its line; names in backquotes are code."""
    for line, text in prose(source):
        plain = re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "·", text))
        for found in _BANNED.finditer(plain):
            near = plain[max(0, found.start() - 30) : found.end() + 30]
            yield f"{line}: {found[0]!r} in {near!r}"


def modules(folder: str) -> Iterator[Path]:
    """The modules of a folder."""
    yield from sorted(Path(ROOT, folder).rglob("*.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_comments_are_in_the_words_of_the_field(folder: str) -> None:
    assert list(modules(folder))
    found = [
        f"{file.relative_to(ROOT)}:{problem}"
        for file in modules(folder)
        for problem in problems(file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""Let go of what lies there, as long as nobody looks at it."""', 4),
        ("x = 1\n# The log goes\n# on from there.\n", 1),
        ('class A:\n    x: int = 0\n    """Whether it is shown."""\n', 1),
        ("x = 1  # kept\n", 1),
        ('"""Return `kept` entries before a position."""', 0),
        ('x = "nobody"', 0),
    ],
)
def test_an_odd_phrase_is_found(source: str, count: int) -> None:
    assert len(list(problems(source))) == count
