"""The store's interface: narrow, in the store's own words, and implemented by the store."""

import ast
import re
from pathlib import Path

import pytest
from tests.house.checkout import ROOT, parse, python_files

from rockgate.store.api import (
    append,
    clock,
    delay,
    half,
    log,
    progress,
    queues,
    read,
    store,
    topics,
)
from rockgate.store.delay.held import HeldEntries
from rockgate.store.half import HalfMessages
from rockgate.store.store import Store

API = ROOT / "store/rockgate/store/api"
QUEUE = ROOT / "store/rockgate/store/queues/view.py"
OWN = {"visible_end"}
"""What of a queue only the store's reader asks for; what it is given is what it gave out."""
COMPOSE = ROOT / "gateway/rockgate/gateway/compose"
MODULES = sorted(path for path in API.glob("*.py") if path.name != "__init__.py")


Parts = tuple[
    topics.Topics,
    queues.Queues,
    append.Appender,
    read.Reader,
    read.Lookup,
    log.Log,
    log.PageResidency,
    log.Epochs,
    log.Committing,
    progress.Progress,
    delay.Deliveries,
    clock.Clock,
]


def the_parts_are_some(concrete: Store) -> Parts:
    """For the type checker: all that the interface promises is there, part by part."""
    return (
        concrete.topics,
        concrete.queues,
        concrete.appender,
        concrete.reader,
        concrete.lookup,
        concrete.log,
        concrete.residency,
        concrete.epochs,
        concrete.commit,
        concrete.progress,
        concrete.deliveries,
        concrete.clock,
    )


def the_store_is_one(concrete: Store) -> store.ReadOnlyStore:
    return concrete


def the_store_has_a_committed_log(concrete: Store) -> store.CommittedLog:
    return concrete


def held_entries_are_some(concrete: HeldEntries) -> delay.HeldEntries:
    return concrete


def half_messages_are_some(concrete: HalfMessages) -> half.HalfMessages:
    return concrete


@pytest.mark.parametrize("path", (*MODULES, QUEUE), ids=lambda path: path.stem)
def test_the_interface_knows_neither_wire(path: Path) -> None:
    assert re.findall(r"kafka|rocketmq|remoting", path.read_text(encoding="utf-8"), re.I) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_interface_never_waits(path: Path) -> None:
    waits = (ast.AsyncFunctionDef, ast.Await)
    assert [node for node in ast.walk(parse(path)) if isinstance(node, waits)] == []


def test_the_interface_promises_nothing_that_no_one_asks_for() -> None:
    asked = {
        node.attr
        for path in python_files("gateway")
        if COMPOSE not in (ROOT / path).parents
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute)
    }
    promised = {
        (path.stem, name): name for path in (*MODULES, QUEUE) for name in promised_by(parse(path))
    }
    assert {where for where, name in promised.items() if name not in asked | OWN} == set()


def test_what_a_protocol_promises_is_found() -> None:
    source = (
        "class A(Protocol):\n    x: int\n    def y(self) -> None: ...\n    def __len__(self): ..."
    )
    assert set(promised_by(ast.parse(source))) == {"x", "y"}


def promised_by(module: ast.Module) -> list[str]:
    """Return the members of a module's protocols; those with two underscores are Python's."""
    names: list[str] = []
    for node in module.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                names.append(each.name)
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                names.append(each.target.id)
    return [name for name in names if not name.startswith("__")]


def holders(tree: ast.Module) -> list[str]:
    """What a module imports of the store as a whole."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module in {"rockgate.store.api.store", "rockgate.store.store"}
        and alias.name == "Store"
    ]


def test_no_one_but_composition_holds_the_whole_store() -> None:
    holding = {
        path
        for path in python_files("gateway")
        if COMPOSE not in (ROOT / path).parents and holders(parse(path))
    }
    assert holding == set(), "take the parts that are used: rockgate.store.api"


def test_who_holds_the_whole_store_is_found() -> None:
    tree = ast.parse("from rockgate.store.api.store import CommittedLog, Store")
    assert holders(tree) == ["rockgate.store.api.store.Store"]
