"""What an object calls is passed to its constructor, and never assigned from elsewhere.

Two ways are left, and both can be read where the object is declared: `Store.attach` lists what a
store calls, and a list of listeners is appended to.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence

from tests.house.checkout import parse, python_files

STORES = {"store", "_store"}
ROOMS = ("store", "gateway")
ATTACHES = "store/rockgate/store/attachments.py"
"""The one module that hangs callables on to others: it is the list of them."""


def chain(node: ast.AST) -> list[str]:
    """The names of `a.b.c`, from the first to the last."""
    if isinstance(node, ast.Attribute):
        return [*chain(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def assigned(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Everything that is assigned to, and what, as far as that is written there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        else:
            continue
        for target in targets:
            if not isinstance(target, ast.Tuple):
                yield target, node.value
            elif isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=True)
            else:
                yield from ((each, None) for each in target.elts)


# Callables


def aliases_of_callables(trees: Iterable[ast.AST]) -> set[str]:
    """The names of types that are callables: `Run = Callable[...]`."""
    return {
        target.id
        for tree in trees
        for target, value in assigned(tree)
        if isinstance(target, ast.Name)
        and isinstance(value, ast.Subscript)
        and chain(value.value) == ["Callable"]
    }


def is_callable_type(annotation: ast.expr, aliases: set[str]) -> bool:
    if isinstance(annotation, ast.BinOp):
        sides = (annotation.left, annotation.right)
        return any(is_callable_type(side, aliases) for side in sides)
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in {"Callable", *aliases}


def callable_attributes(trees: Sequence[ast.AST]) -> set[str]:
    """The names of attributes that are declared to hold something to be called."""
    aliases = aliases_of_callables(trees)
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and is_callable_type(node.annotation, aliases):
                found.add(chain(node.target)[-1])
            elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
                given = {
                    each.arg
                    for each in (*node.args.args, *node.args.kwonlyargs)
                    if each.annotation and is_callable_type(each.annotation, aliases)
                }
                found |= {
                    target.attr
                    for target, value in assigned(node)
                    if isinstance(target, ast.Attribute)
                    and isinstance(value, ast.Name)
                    and value.id in given
                }
    return found


def methods(trees: Sequence[ast.AST]) -> set[str]:
    """The names that are methods and nothing else: no property, no attribute, no field."""
    names: set[str] = set()
    others: set[str] = set()
    for tree in trees:
        for target, _ in assigned(tree):
            others.add(chain(target)[-1] if chain(target) else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef):
                        (others if each.decorator_list else names).add(each.name)
    return names - others


def callables_set_from_afar(tree: ast.AST, attributes: set[str], bound: set[str]) -> Iterator[str]:
    """Attributes of other objects that are given something to be called."""
    for target, value in assigned(tree):
        if not isinstance(target, ast.Attribute) or chain(target.value) == ["self"]:
            continue
        is_handed_on = isinstance(value, (ast.Name, ast.Attribute))
        if (
            target.attr.startswith("on_")
            or isinstance(value, ast.Lambda)
            or (is_handed_on and target.attr in attributes)
            or (isinstance(value, ast.Attribute) and value.attr in bound)
        ):
            yield f"{target.lineno}: {ast.unparse(target)}"


def test_no_object_is_given_what_it_calls_by_assignment_from_afar() -> None:
    trees = {path: parse(path) for path in python_files(*ROOMS, "protocol")}
    every = [*trees.values()]
    attributes, bound = callable_attributes(every), methods(every)
    found = [
        f"{path}:{each}"
        for path, tree in trees.items()
        if path.parts[0] in ROOMS and str(path) != ATTACHES
        for each in callables_set_from_afar(tree, attributes, bound)
    ]
    assert found == []


def test_a_callable_that_is_set_from_afar_is_noticed() -> None:
    tree = ast.parse(
        """
Run = Callable[[], None]

class Timer:
    tick: Run | None

    def __init__(self, space: Run) -> None:
        self.space = space
        self.later: Callable[[int], None] = print
        self.due = lambda: 3

    def ring(self) -> None:
        bell.sound, bell.count = self.ring, self.count
        self.bell.loud = lambda: None
        timer.later = given
        timer.space = given
        timer.tick = Bell(given)
        timer.on_rung = given
"""
    )
    found = callables_set_from_afar(tree, callable_attributes([tree]), methods([tree]))
    assert [each.partition(": ")[2] for each in found] == [
        "bell.sound",
        "self.bell.loud",
        "timer.later",
        "timer.space",
        "timer.on_rung",
    ]


# Stores


def wired_from_afar(tree: ast.AST) -> Iterator[str]:
    """Attributes of a store, or of one of its parts, that are set."""
    for target, _ in assigned(tree):
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
