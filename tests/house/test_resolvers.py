"""What a client names is resolved in one place on Kafka's side."""

import ast

import pytest
from tests.house.checkout import parse, python_files

KAFKA = "gateway/rockgate/gateway/kafka"
RESOLVERS = {
    f"{KAFKA}/request/names.py",
    f"{KAFKA}/embedded/catalog.py",
    f"{KAFKA}/embedded/resolve.py",
    # The fast case of a single batch, and the topic of a fetch session.
    f"{KAFKA}/handlers/produce.py",
    f"{KAFKA}/fetch/session.py",
}


def translations(tree: ast.Module) -> int:
    """How often a module turns a client's name into the store's."""
    names = (
        node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    )
    return sum(name == "to_store" for name in names)


def test_only_resolvers_translate_names() -> None:
    found = {
        path.as_posix()
        for path in python_files("gateway")
        if path.as_posix().startswith(KAFKA) and translations(parse(path))
    }
    assert found == RESOLVERS


COUNTERS = {
    f"{KAFKA}/topics/catalog.py",
    f"{KAFKA}/embedded/resolve.py",
    # Each once for every partition of a hot request.
    f"{KAFKA}/handlers/offset_commit.py",
    f"{KAFKA}/handlers/produce.py",
    f"{KAFKA}/fetch/partitions.py",
}


def counts(tree: ast.Module) -> int:
    """How often a module compares a partition's index with how many there are."""
    chains = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    ends = (node.comparators[-1] for node in chains if ast.unparse(node.left) == "0")
    return sum(
        ast.unparse(end).endswith(("queue_count", "len(queues)", "len(found)")) for end in ends
    )


def test_only_resolvers_say_whether_there_is_a_partition() -> None:
    found = {
        path.as_posix()
        for path in python_files("gateway")
        if path.as_posix().startswith(KAFKA) and counts(parse(path))
    }
    assert found == COUNTERS


@pytest.mark.parametrize("source", ["0 <= a.index < topic.queue_count", "0 <= n < len(queues)"])
def test_a_count_is_found(source: str) -> None:
    assert counts(ast.parse(source)) == 1


@pytest.mark.parametrize("source", ["names.to_store(name)", "to_store(name)"])
def test_a_translation_is_found(source: str) -> None:
    assert translations(ast.parse(source)) == 1
