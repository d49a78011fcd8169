"""Tables for people: columns under titles, numbers to the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(titles: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lines of text: for each row what it has under the names of `titles`."""
    cells = [["-" if row.get(name) is None else str(row[name]) for name in titles] for row in rows]
    widths = [
        max(len(title), *(len(line[at]) for line in cells), 0) if cells else len(title)
        for at, title in enumerate(titles.values())
    ]
    is_number = [
        bool(rows) and all(isinstance(row.get(name), int | float | None) for row in rows)
        for name in titles
    ]
    lines = []
    for line in (list(titles.values()), *cells):
        parts = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        ]
        lines.append("  ".join(parts).rstrip() + "\n")
    return "".join(lines)
