"""Tests stand on one world: none opens a store, or is called a world, in a way of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import parse, python_files

WORLD = Path("tests/world.py")

# File -> why it opens a store by itself. Files in memory under a clock by hand are no reason.
MAY_OPEN = {
    "tests/world.py": "the world itself",
    "tests/crash/workload.py": "opens whatever directory a crash has left",
    "tests/crash/writer.py": "a process of its own, on real files and real time, to be killed",
    "tests/crash/test_kill.py": "looks at what that process left",
    "tests/store/replication/pair.py": "opens a replica, which begins no epoch of its own",
    "tests/store/check/test_repair.py": "opens what the check hands it, as a server would",
    "tests/cli/commands/test_transactions.py": "writes into a stopped server's data directory",
}


def opened(tree: ast.Module) -> Iterator[int]:
    """The lines on which a store is constructed."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Store"
        ):
            yield node.lineno


def worlds(tree: ast.Module) -> Iterator[int]:
    """The lines on which a class is called World."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "World":
            yield node.lineno


def test_only_the_world_opens_stores() -> None:
    opening = {str(path) for path in python_files("tests") if any(opened(parse(path)))}
    assert opening - MAY_OPEN.keys() == set(), "extend tests.world.World instead"
    assert MAY_OPEN.keys() - opening == set(), "opens none any more: take it off the list"


def test_one_class_is_called_world() -> None:
    rooms = ("tests", "bench", "compat-tests")
    found = [path for path in python_files(*rooms) if any(worlds(parse(path)))]
    assert found == [WORLD], "call a fixture after what it holds"


@pytest.mark.parametrize(
    ("text", "finds"),
    [("def f():\n    return Store(a, b, c)", opened), ("class World: ...", worlds)],
)
def test_a_second_one_would_be_found(text: str, finds: object) -> None:
    assert callable(finds) and list(finds(ast.parse(text)))
    assert not list(finds(ast.parse("class KafkaWorld(World):\n    store: Store")))
