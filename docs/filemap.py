"""The file map, docs/internals/file-map.md: every module and the first sentence of its docstring.

A module says what it is for in one place, its own first line; the map repeats it. Only the part of
the page between the two marks is written.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/internals/file-map.md"
ROOMS = ("protocol", "store", "gateway", "sdk", "pipeline", "cli", "console", "bench")
BEGIN = "<!-- file map: written by `make docs` from the first sentence of each module -->"
END = "<!-- end of the file map -->"


class MapError(ValueError):
    """The page has lost its marks, or a module does not say what it is for."""


def render(root: Path = ROOT) -> str:
    """The page with its map as the modules are now."""
    text = (root / PAGE).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise MapError(f"{PAGE} must hold each mark of the file map once")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return "".join([before, BEGIN, "\n\n", "\n".join(map_lines(root)), "\n", END, after])


def map_lines(root: Path) -> Iterator[str]:
    """For each room its folders, and for each folder a table of its files."""
    for room in ROOMS:
        for folder in sorted({path.parent for path in modules(root / room)}):
            yield from folder_lines(root, folder)


def folder_lines(root: Path, folder: Path) -> Iterator[str]:
    """One folder: what its package is, then what each module does."""
    name = folder.relative_to(root).as_posix()
    package = folder / "__init__.py"
    yield from (f"**`{name}/`**{' ' + purpose(package) if package.is_file() else ''}", "")
    files = [path for path in modules(folder, deep=False) if path != package]
    if files:
        yield from ("| file | what it does |", "|---|---|")
        for path in files:
            text = purpose(path).replace("|", "\\|")
            yield f"| [{path.name}](../../{name}/{path.name}) | {text} |"
        yield ""


def modules(folder: Path, *, deep: bool = True) -> list[Path]:
    """The Python files of a folder, sorted; what a run left in hidden folders is not counted."""
    found = folder.rglob("*.py") if deep else folder.glob("*.py")
    return sorted(path for path in found if "/." not in f"/{path.relative_to(folder).as_posix()}")


def purpose(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise MapError(f"{path} does not say what it is for: it has no docstring")
    first = " ".join(docstring.split("\n\n")[0].split())
    match = re.match(r".*?[.!?](?=\s|$)", first)
    return match[0] if match else first
