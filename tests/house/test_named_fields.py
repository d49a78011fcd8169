"""A draft has fifteen fields: whoever makes one in the gateway names them."""

import ast

import pytest
from tests.house.checkout import parse, python_files

SOURCES = python_files("gateway")


def unnamed(tree: ast.Module) -> list[int]:
    """Return the lines where a draft is made by the places of its fields."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Draft" and node.args
    ]


def test_drafts_are_made_by_the_names_of_their_fields() -> None:
    assert {str(path): lines for path in SOURCES if (lines := unnamed(parse(path)))} == {}


@pytest.mark.parametrize("line", ['Draft(b"", 0, 0, body)', "Draft(*fields)"])
def test_a_draft_without_names_is_noticed(line: str) -> None:
    assert unnamed(ast.parse(line)) == [1]
