"""Pages are written in the words of the field: no noun that only this project has, no odd phrase.

Looked at is prose alone: code, names in backquotes and where links lead are left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import ROOT

NOUNS = (r"doors?", r"desks?", r"twins?")
"""Nouns that only this project had."""

ABOUT_ROOMS = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "cli/README.md",
    "pipeline/README.md",
    "tests/README.md",
    "docs/architecture.md",
    "docs/glossary.md",
    "docs/decisions/README.md",
    "docs/decisions/0001-namespace-package-in-rooms.md",
    "docs/decisions/0007-packages-that-show-the-design.md",
}
"""The pages on the layout of the checkout; elsewhere nothing is called a room."""

PHRASES = (
    r"no(body|t there)",
    r"(some|every)body",
    r"shall",
    r"any more",
    r"go(es|ing)? on",
    r"look(s|ed) at",
    r"all the same",
    r"so (long|many|much)",
    r"the very",
    r"for ever",
    r"kept aside",
    r"waits? for its time",
    r"what waits",
    r"(is|are) told",
    r"as (it|they) lies?",
    r"stands? on",
)
"""Turns of phrase that a page on a broker would not use."""

NOT_YET: set[str] = set()
"""Pages that may still use such phrases; the list only shrinks."""

GENERATED_FROM_CODE = {
    "docs/internals/file-map.md",
    "docs/internals/walks.md",
    "docs/reference/requirements.md",
}
"""Pages that repeat docstrings and names of tests, which are not prose for users."""


def pages() -> list[str]:
    """Every page of the checkout that people read."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md")]
    names = {path.relative_to(ROOT).as_posix() for path in found}
    return sorted(names - GENERATED_FROM_CODE)


def prose(text: str) -> str:
    """A page without code, comments and the targets of links; lines keep their numbers."""
    text = re.sub(
        r"^```.*?^```|<!--.*?-->",
        lambda found: "\n" * found[0].count("\n"),
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    return re.sub(r"`[^`\n]*`|\]\([^)\n]*\)", "·", text)


def problems(page: str, text: str) -> Iterator[str]:
    """Each word and phrase of a page that it may not use."""
    banned = [*NOUNS]
    if page not in ABOUT_ROOMS:
        banned.append(r"rooms?")
    if page not in NOT_YET:
        banned.extend(PHRASES)
    expression = re.compile(rf"\b({'|'.join(banned)})\b", re.IGNORECASE)
    for number, line in enumerate(prose(text).splitlines(), 1):
        for found in expression.finditer(line):
            yield f"{page}:{number}: {found[0]!r}"


@pytest.mark.parametrize("page", pages())
def test_a_page_is_in_the_words_of_the_field(page: str) -> None:
    found = list(problems(page, Path(ROOT, page).read_text(encoding="utf-8")))
    assert not found, "\n".join(found)


def test_pages_that_may_do_otherwise_exist_and_do() -> None:
    assert set(pages()) >= ABOUT_ROOMS | NOT_YET
    for page in NOT_YET:
        text = Path(ROOT, page).read_text(encoding="utf-8")
        assert list(problems("x.md", text)), f"{page} is clean: take it off the list"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Kafka's door is open.", 1),
        ("A room of the house.", 1),
        ("Nobody is told.", 2),
        ("It waits for its time, and goes on.", 2),
        ("`door` and [this](../door.md) are names.", 0),
        ("```sh\na door\n```", 0),
        ("The listener is open.", 0),
    ],
)
def test_an_odd_word_is_found(line: str, count: int) -> None:
    assert len(list(problems("x.md", line))) == count
