"""The checkout for house rules: its root, its files, and their imports."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The rooms with a part of the namespace package, and the others.
SOURCE_ROOMS = ("protocol", "store", "gateway", "sdk", "pipeline", "cli", "console")
SIDE_ROOMS = ("tests", "bench", "compat-tests", "docs")


@cache
def files() -> tuple[Path, ...]:
    """Every file that git tracks or would track, so that a new file counts at once."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = sorted({name for name in output.split("\0") if name})
    return tuple(path for path in map(Path, names) if (ROOT / path).is_file())


def python_files(*rooms: str) -> list[Path]:
    """The Python files of these rooms (by default of all), relative to the root."""
    return [
        path for path in files() if path.suffix == ".py" and (not rooms or path.parts[0] in rooms)
    ]


def text_files() -> Iterator[tuple[Path, str]]:
    """Every text file with its text. Captured bytes and key files are not text."""
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
    """Every absolute module name that a file imports, in functions and under `if` too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names
