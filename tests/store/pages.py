"""Byte tables of the documentation, to be compared with the structs they describe."""

from __future__ import annotations

import re
import struct
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "internals"


def table(page: str, heading: str) -> list[tuple[int, int]]:
    """Place and size of every field in the table below a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    part = re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    return [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| (\d+) \|", part, re.M)]


def fields(layout: struct.Struct) -> list[tuple[int, int]]:
    """Place and size of every field of a struct."""
    found, at = [], 0
    for count, kind in re.findall(r"(\d*)([a-zA-Z])", layout.format):
        one = struct.calcsize(f">{kind}")
        sizes = [int(count)] if kind == "s" else [one] * int(count or 1)
        for size in sizes:
            found.append((at, size))
            at += size
    assert at == layout.size
    return found
