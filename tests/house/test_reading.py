"""Entries leave the store by its reader and its lookup, which end at what is visible."""

import ast
from collections.abc import Iterator

from tests.house.checkout import parse, python_files

RAW = {"read", "slice", "walk", "segment_at"}
"""What the commit log offers, and the store keeps for itself."""


def raw_reads(tree: ast.AST) -> Iterator[int]:
    """Lines on which something is read from the log itself."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr not in RAW:
            continue
        owner = node.value
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if name.lstrip("_") in ("log", "commitlog"):
            yield node.lineno


def test_no_one_outside_of_the_store_reads_the_log_itself() -> None:
    found = [
        f"{path}:{line}"
        for path in python_files("gateway", "cli")
        for line in raw_reads(parse(path))
    ]
    assert found == []


def test_a_read_of_the_log_is_noticed() -> None:
    assert list(raw_reads(ast.parse("view = self._store.log.slice(position, size)"))) == [1]
    assert list(raw_reads(ast.parse("end = store.log.end"))) == []
