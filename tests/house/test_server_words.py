"""What the server says is in the words of the field: errors, remarks, log lines, settings, metrics.

The strings and most phrases are those of test_words; what only the server used to say is added.
Messages of asserts are for developers, and the schema's code generators hold source, not sentences.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from tests.house.checkout import ROOT
from tests.house.test_words import HOME_MADE, ODD, Text, texts_of

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.config.settings import documentation_of
from rockgate.gateway.telemetry.metrics import METRICS

ROOMS = ("gateway", "store", "protocol")
GENERATORS = "protocol/rockgate/protocol/kafka/schema/"

SERVER_ODD = (
    r"\bits time\b",
    r"\btheir time\b",
    r"\b(is|are) (the )?most$",
    r"\bare allowed$",
    r"\bpasses (the|its)\b",
    r"\bput off\b",
    r"\bput aside\b",
    r"\bgiven (back|up)\b",
    r"\bbuilds? (it|them) again\b",
    r"\bnamed more than once\b",
    r"\bthere is no (topic|group|broker|node|quota|such)\b",
    r"\bthe server's own\b",
    r"\bof this name\b",
    r"\bask for less\b",
    r"\bgo(es)? on\b",
    r"\bwell again\b",
    r"\bwelcome\b",
    r"\bis gone\b",
    r"\bcut (off|short)\b",
    r"\bstands at\b",
    r"\bwhat (waits|waited|lies)\b",
    r"\bno longer known\b",
    r"\bhere\b",
    r"\bnot shown\b",
    r"\bremembered\b",
)
"""What the server used to say."""

# "is no longer" is plain English; the other uses of "is no" are not.
_PHRASES = (*(phrase for phrase in ODD if "is no " not in phrase), *SERVER_ODD)
_BANNED = re.compile("|".join((rf"\b({'|'.join(HOME_MADE)})\b", *_PHRASES)), re.IGNORECASE)


def problems(texts: Iterator[Text]) -> list[str]:
    """Each string that uses a banned word or phrase."""
    return [
        f"{each.path}:{each.line}: {found[0]!r} in {each.text!r}"
        for each in texts
        if (found := _BANNED.search(each.text)) is not None
    ]


def server_texts(source: str, path: str) -> Iterator[Text]:
    """The strings of a module of the server, without those of asserts."""
    asserted = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return (each for each in texts_of(source, path) if each.line not in asserted)


@pytest.mark.parametrize("room", ROOMS)
def test_what_the_server_says_is_in_the_words_of_the_field(room: str) -> None:
    files = sorted(Path(ROOT, room, "rockgate").rglob("*.py"))
    assert files
    found: list[str] = []
    for file in files:
        path = str(file.relative_to(ROOT))
        if not path.startswith(GENERATORS):
            found += problems(server_texts(file.read_text(), path))
    assert not found, "\n".join(found)


def test_settings_and_metrics_are_described_in_the_words_of_the_field() -> None:
    described = {
        f"{section}.{field}": text
        for section, cls in get_type_hints(Config).items()
        for field, text in documentation_of(cls).items()
    }
    described |= {name: metric.about for name, metric in METRICS.items()}
    assert len(described) > 100
    found = problems(Text(name, 0, text) for name, text in described.items())
    assert not found, "\n".join(found)
    assert [name for name, text in described.items() if not re.match(r"[A-Z`1].*\.$", text)] == []


@pytest.mark.parametrize(
    "line",
    [
        'raise Refused(code, f"the body has {size} bytes, {most} are allowed")',
        'log.warning("producers are welcome again")',
        'about = "Messages that wait for their time."',
        'raise StoreFull(f"no room on disk for {name}")',
        'log.info("%s go on", what)',
        'reason = "the next start builds it again"',
    ],
)
def test_an_odd_phrase_of_the_server_is_found(line: str) -> None:
    assert len(problems(server_texts(line, "gateway/x.py"))) == 1


def test_messages_of_asserts_are_for_developers() -> None:
    assert problems(server_texts('assert x, "who waits is told first"', "gateway/x.py")) == []


SENTENCES = {
    "BatchTooLarge": 0,
    "ContentTooLarge": 0,
    "MalformedBatch": 0,
    "MalformedContent": 0,
    "MalformedFrame": 0,
    "RequestError": 1,
    "StoreFull": 0,
    "TooManyPending": 0,
    "_corrupt": 0,
    "_malformed": 1,
}
"""Calls whose argument at this place is answered or logged as it is.

The reasons of EntryError, MalformedMessage, MalformedRequest and SqlError are quoted in a sentence
of the error's own.
"""


def fragments(source: str, path: str) -> Iterator[str]:
    """Each text of an error that does not begin and end as a sentence does."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        place = SENTENCES.get(node.func.id)
        if place is None or len(node.args) <= place:
            continue
        # The first is the whole; others are parts that are put into it.
        whole = next(texts_of(f"text = {ast.unparse(node.args[place])}", path), None)
        if whole and not re.fullmatch(r"([A-Z0-9{]|zstd ).*[.}]", whole.text, re.DOTALL):
            yield f"{path}:{node.lineno}: {whole.text!r}"


@pytest.mark.parametrize("room", ROOMS)
def test_the_text_of_an_error_is_a_sentence(room: str) -> None:
    files = sorted(Path(ROOT, room, "rockgate").rglob("*.py"))
    found = [
        problem
        for file in files
        for problem in fragments(file.read_text(), str(file.relative_to(ROOT)))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('raise MalformedFrame("negative length")', 1),
        ('raise MalformedFrame("Negative length")', 1),
        ('raise RequestError(code, f"record {index} is invalid.")', 1),
        ('raise RequestError(code, f"{count} records are invalid.")', 0),
        ('raise EntryError("unknown magic")', 0),
    ],
)
def test_a_fragment_is_found(line: str, count: int) -> None:
    assert len(list(fragments(line, "protocol/x.py"))) == count
