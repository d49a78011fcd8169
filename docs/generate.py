"""Write the generated pages again: `make docs`, or `python -m docs.generate [--check]`.

PAGES is the whole list: a page and the function that renders it from the code or data it speaks
of. With --check nothing is written; pages that differ are named and the exit status is 1. The
house tests ask the same question, so a stale page cannot be submitted.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs import benchmarks, compatibility, filemap, metrics, protocol, rows, settings

ROOT = Path(__file__).resolve().parent.parent

PAGES: Mapping[str, Callable[[], str]] = {
    filemap.PAGE: filemap.render,
    settings.PAGE: settings.render,
    protocol.PAGE: protocol.render,
    metrics.PAGE: metrics.render,
    compatibility.PAGE: compatibility.render,
    benchmarks.PAGE: benchmarks.render,
    "docs/reference/requirements.md": rows.render,
}


def stale_pages() -> list[str]:
    """The pages whose file is missing or differs from what would be written now."""
    return [name for name, render in PAGES.items() if current_text(ROOT / name) != render()]


def current_text(path: Path) -> str | None:
    """What the file holds; None when there is no file."""
    return path.read_text(encoding="utf-8") if path.is_file() else None


def main(arguments: list[str] | None = None) -> int:
    """Write or check every page; the result is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate")
    parser.add_argument("--check", action="store_true", help="write nothing; name stale pages")
    check: bool = parser.parse_args(arguments).check
    stale = stale_pages()
    for name in stale:
        if not check:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"{'stale' if check else 'wrote'} {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
