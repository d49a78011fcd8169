"""What a store calls is hung on to it by `Store.attach`, and by nobody's assignment from afar."""

import ast
from collections.abc import Iterator

from tests.house.checkout import parse, python_files

STORES = {"store", "_store"}


def chain(node: ast.AST) -> list[str]:
    """The names of `a.b.c`, from the first to the last."""
    if isinstance(node, ast.Attribute):
        return [*chain(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def assigned(tree: ast.AST) -> Iterator[ast.expr]:
    """Everything that is assigned to."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        for target in targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]


def wired_from_afar(tree: ast.AST) -> Iterator[str]:
    """Attributes of a store, or of one of its parts, that are set."""
    for target in assigned(tree):
        if isinstance(target, ast.Attribute) and STORES & set(chain(target.value)):
            yield f"{target.lineno}: {ast.unparse(target)}"


def test_the_gateway_sets_no_attribute_of_a_store() -> None:
    found = [
        f"{path}:{each}"
        for path in python_files("gateway", "cli")
        for each in wired_from_afar(parse(path))
    ]
    assert found == []


def test_an_assignment_from_afar_is_noticed() -> None:
    source = "store.deliveries.redeliver = a\nself._store.on_flushed = b\nself.store = c\n"
    assert list(wired_from_afar(ast.parse(source))) == [
        "1: store.deliveries.redeliver",
        "2: self._store.on_flushed",
    ]
