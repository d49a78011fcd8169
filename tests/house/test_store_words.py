"""The store speaks no protocol: what a topic's settings are called is the gateway's business."""

import ast
from collections.abc import Iterator

from tests.house.checkout import parse, python_files

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS

NAMES = frozenset(config.name for config in TOPIC_CONFIGS.values())


def config_names(tree: ast.AST) -> Iterator[str]:
    """Kafka's names of topic configs that stand in a module's strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.value


def test_no_config_of_kafkas_is_named_in_the_store() -> None:
    found = [
        f"{path}: {name}" for path in python_files("store") for name in config_names(parse(path))
    ]
    assert found == []


def test_a_config_of_kafkas_is_noticed() -> None:
    assert {"cleanup.policy", "retention.ms", "flush.messages"} <= NAMES
    assert list(config_names(ast.parse('topic.config.get("retention.ms")'))) == ["retention.ms"]
