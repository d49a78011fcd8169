"""The parts of a Markdown page that can be checked: its fenced blocks and its links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tests.house.checkout import ROOT, files

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)```", re.S | re.M
)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
LINK_TEXT = re.compile(r"\[([^\]]*)\]\([^)\s]+\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
NAMED_LINK = re.compile(r"\[`?(?P<name>[\w./-]+\.py)`?\]\((?P<target>[^)\s]+)\)")
# `rockgate serve --set a=b` in a block; comments and quoted text are ignored.
MAKE = re.compile(r"^\s*(?:\$ )?make ([a-z-]+)", re.M)
SUBCOMMAND = re.compile(r"[a-z][a-z-]*")
ROCKGATE = re.compile(r"^\s*(?:\$ )?rockgate\b(?P<arguments>[^\n#|>]*)", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, the words after it, and its text."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown page of the checkout, relative to the root."""
    return [path for path in files() if path.suffix == ".md"]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page=page, line=line, language=language, words=tuple(words), text=match["text"])


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links to files of the checkout, without fragments."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for match in LINK.finditer(text):
        target = match["target"].split("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            yield target


def anchored_links(page: Path) -> Iterator[tuple[str, str]]:
    """A page's links to headings: the linked page ("" is this one) and the heading."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for match in LINK.finditer(text):
        target, mark, heading = match["target"].partition("#")
        if mark and "://" not in target and (target == "" or target.endswith(".md")):
            yield target, heading


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub generates them."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    found: set[str] = set()
    for title in HEADING.findall(text):
        words = LINK_TEXT.sub(r"\1", title).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        # Repeated headings get a number.
        taken = 0
        while (each := f"{name}-{taken}" if taken else name) in found:
            taken += 1
        found.add(each)
    return found


def named_links(page: Path) -> Iterator[tuple[str, str]]:
    """A page's links whose text is the name of a module, with their targets."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for match in NAMED_LINK.finditer(text):
        yield match["name"], match["target"].split("#")[0]


def make_targets(text: str) -> list[str]:
    """The targets of the `make` commands in a block."""
    return MAKE.findall(text)


def rockgate_commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (subcommand, long flags) of every `rockgate` command in a block.

    An argument that looks like a nested subcommand counts as one: `--help` goes before it.
    """
    for match in ROCKGATE.finditer(text.replace("\\\n", " ").replace("&& ", "\n")):
        words = match["arguments"].split()
        leading = takewhile(SUBCOMMAND.fullmatch, words)
        yield " ".join(leading), [word.split("=")[0] for word in words if word.startswith("--")]
