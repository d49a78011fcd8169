"""The requirement rows: what each promises, and which tests show it.

The promises are data, in docs/requirements/*.toml, one file per chapter of the page. A test names
the rows it shows with `@pytest.mark.row("S-07")`; the marks are read from the source text of the
tests, so that the page can be written without running them. A row that no test shows is `not yet`,
unless its file says how and why we depart from it.

A mark counts where a reader sees it: on a test function (also inside its parametrisation), on a
test class, or in a module's `pytestmark`. Anywhere else it is an error rather than a row less.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "requirements"
TEST_ROOMS = ("tests", "compat-tests")
FOREIGN = {".venv", "build", "node_modules", "target"}

INTRODUCTION = """\
<!-- Written by `make docs` from docs/requirements/*.toml and the marks on the tests. -->
# Requirements

What rockgate promises, row by row. The ids come from the project's inventories of RocketMQ 4.7 and
4.8; the words are ours. A row is **shown** when a test carries its mark (`@pytest.mark.row`),
**departs** when we chose otherwise and say why, and **not yet** else. A row that departs is never
counted as shown, even if it departs in one respect only: its tests show what we do instead. One
that departs without a test is a decision, not yet a fact. What a test is worth is tried by breaking
the code behind it: `make rows-mutate`.
"""


class RowError(ValueError):
    """The data or the marks contradict themselves; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One requirement: its id, our promise in a line, and why we depart from it if we do."""

    id: str
    promise: str
    departs: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that belong together: one table of the page."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One data file: one section of the page."""

    title: str
    groups: tuple[Group, ...]

    def rows(self) -> Iterator[Row]:
        """The rows of all groups, in the order of the file."""
        for group in self.groups:
            yield from group.rows


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mark:
    """One use of a row's id: the file (relative to the root) and the test, or the whole module."""

    file: str
    test: str


# Reading the promises


def load(folder: Path = DATA) -> tuple[Chapter, ...]:
    """Every chapter, in the order of the file names. An id that appears twice is an error."""
    chapters = tuple(read_chapter(path) for path in sorted(folder.glob("*.toml")))
    seen: set[str] = set()
    for row in (row for chapter in chapters for row in chapter.rows()):
        if row.id in seen:
            raise RowError(f"row {row.id} is in docs/requirements twice")
        seen.add(row.id)
    return chapters


def read_chapter(path: Path) -> Chapter:
    """One data file. Keys we do not know are errors: a misspelt table would drop its rows."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    require_keys(data, {"chapter", "group"}, path.name)
    groups = tuple(read_group(group, path.name) for group in data["group"])
    return Chapter(title=data["chapter"], groups=groups)


def read_group(data: Mapping[str, Any], where: str) -> Group:
    """One `[[group]]`: its rows, and the departures, which may only name rows of the group."""
    require_keys(data, {"title", "rows", "departs"}, where)
    departs: Mapping[str, str] = data.get("departs", {})
    unknown = departs.keys() - data["rows"].keys()
    if unknown:
        raise RowError(f"{where}: departs names rows of another group: {sorted(unknown)}")
    rows = (
        Row(id=id, promise=promise, departs=departs.get(id)) for id, promise in data["rows"].items()
    )
    return Group(title=data["title"], rows=tuple(rows))


def require_keys(data: Mapping[str, Any], known: set[str], where: str) -> None:
    """Refuse a table with keys that mean nothing here."""
    unknown = data.keys() - known
    if unknown:
        raise RowError(f"{where}: unknown keys {sorted(unknown)}, known are {sorted(known)}")


# Reading the marks


def shown_by(root: Path = ROOT) -> dict[str, list[Mark]]:
    """For each row id that some test carries, the tests that carry it, in order."""
    found: dict[str, set[Mark]] = {}
    for path in (path for room in TEST_ROOMS for path in modules_of(root / room)):
        name = path.relative_to(root).as_posix()
        for test, row in marks_in(ast.parse(path.read_text(encoding="utf-8")), name):
            found.setdefault(row, set()).add(Mark(file=name, test=test))
    return {row: sorted(marks) for row, marks in found.items()}


def modules_of(room: Path) -> list[Path]:
    """The test modules of a room, without what a client's run has unpacked or installed there."""
    return [
        path
        for path in sorted(room.rglob("test_*.py"))
        if not FOREIGN.intersection(path.relative_to(room).parts)
    ]


def marks_in(tree: ast.Module, where: str) -> Iterator[tuple[str, str]]:
    """(test, row id) for every mark of one module; a mark that would not be read is an error."""
    left = {id(call): call for call in mark_calls([tree])}
    for test, nodes in marked_places(tree):
        for call in mark_calls(nodes):
            del left[id(call)]
            for row in row_ids(call, where):
                yield test, row
    for call in left.values():
        raise RowError(f"{where}:{call.lineno}: a row mark stands on a test, class or pytestmark")


def marked_places(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """The places where a mark counts, each with the name of what it marks."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield "", [node.value]
        elif isinstance(node, ast.ClassDef):
            yield node.name, node.decorator_list
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{inner.name}", inner.decorator_list
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.decorator_list


def mark_calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Every `….mark.row(…)` below these nodes."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.row"):
            yield node


def row_ids(call: ast.Call, where: str) -> Iterator[str]:
    """The ids a mark names. They must be written out, or no reader of the text could find them."""
    for argument in call.args:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise RowError(f"{where}:{call.lineno}: a row mark takes ids written out as strings")
        yield argument.value


# Writing the page


@dataclass(slots=True)
class Tally:
    """How many of a set of rows are done. A row that departs is not, whatever tests it has."""

    shown: int = 0
    departs: int = 0
    untested: int = 0
    not_yet: int = 0
    title: str = field(default="all", kw_only=True)

    def count(self, row: Row, marks: Mapping[str, list[Mark]]) -> None:
        """Take one row into account."""
        if row.departs:
            self.departs += 1
            self.untested += row.id not in marks
        elif row.id in marks:
            self.shown += 1
        else:
            self.not_yet += 1

    def line(self) -> str:
        """The tally as a line of the summary table."""
        total = self.shown + self.departs + self.not_yet
        counts = (total, self.shown, self.departs, self.untested, self.not_yet)
        return f"| {self.title} | {' | '.join(map(str, counts))} |"


def render(root: Path = ROOT) -> str:
    """The whole page docs/reference/requirements.md."""
    chapters = load(root / "docs" / "requirements")
    marks = shown_by(root)
    body = [line for chapter in chapters for line in chapter_lines(chapter, marks)]
    return "\n".join([INTRODUCTION, *summary_lines(chapters, marks), *body]).rstrip() + "\n"


def summary_lines(chapters: Iterable[Chapter], marks: Mapping[str, list[Mark]]) -> list[str]:
    """How many rows have tests, depart and are missing, by chapter and in all."""
    everything = Tally(title="**all**")
    lines = [
        "| chapter | rows | shown | departs | of these without a test | not yet |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for chapter in chapters:
        tally = Tally(title=f"[{chapter.title}](#{anchor(chapter.title)})")
        for row in chapter.rows():
            tally.count(row, marks)
            everything.count(row, marks)
        lines.append(tally.line())
    return [*lines, everything.line(), ""]


def chapter_lines(chapter: Chapter, marks: Mapping[str, list[Mark]]) -> Iterator[str]:
    """One section of the page, a table per group."""
    yield from (f"## {chapter.title}", "")
    for group in chapter.groups:
        yield from (f"### {group.title}", "", "| id | promise | state |", "|---|---|---|")
        for row in group.rows:
            yield f"| {row.id} | {cell(row.promise)} | {state(row, marks.get(row.id, []))} |"
        yield ""


def state(row: Row, marks: list[Mark]) -> str:
    """What is true of a row today."""
    links = [link(mark) for mark in marks]
    if row.departs:
        return "<br>".join([f"departs: {cell(row.departs)}", *(links or ["(no test yet)"])])
    return "<br>".join(links) or "not yet"


def link(mark: Mark) -> str:
    """A link from the page to a test; without a line number, which every edit would move."""
    return f"[{mark.test or Path(mark.file).stem}](../../{mark.file})"


def cell(text: str) -> str:
    """Text that cannot end a table cell early."""
    return text.replace("|", "\\|")


def anchor(title: str) -> str:
    """The fragment under which a heading is reached."""
    kept = "".join(char for char in title.lower() if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")
