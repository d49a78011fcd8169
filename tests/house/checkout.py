"""The checkout as the house rules see it: where it is, which files it has, what they import."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The rooms that hold a portion of the namespace package, and those that only stand beside them.
SOURCE_ROOMS = ("protocol", "store", "gateway", "sdk", "pipeline", "cli")
SIDE_ROOMS = ("tests", "bench", "compat-tests", "docs")


@cache
def files() -> tuple[Path, ...]:
    """Every file that git tracks or would track, from the root: a new file counts at once."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = sorted({name for name in output.split("\0") if name})
    return tuple(path for path in map(Path, names) if (ROOT / path).is_file())


def python_files(*rooms: str) -> list[Path]:
    """The Python files of these rooms (of all, when none is named), relative to the root."""
    return [
        path for path in files() if path.suffix == ".py" and (not rooms or path.parts[0] in rooms)
    ]


def text_files() -> Iterator[tuple[Path, str]]:
    """Every file that is text, with its text. Captured bytes and key files are not."""
    for path in files():
        try:
            yield path, (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def parse(path: Path) -> ast.Module:
    """The syntax tree of one file, relative to the root (or absolute, for copies in a test)."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    """`store/rockgate/store/store.py` is `rockgate.store.store`; a folder names its package."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.Module) -> set[str]:
    """Every absolute module name a file imports anywhere, in functions and under `if` too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names
