"""Properties that delay a message or say where it belongs, and RocketMQ's own topics, are each
spelled in one module."""

import ast

import pytest
from tests.house.checkout import parse, python_files

from rockgate.protocol.remoting import properties, system_topics

# DELAY is also a topic's message.type, and so is not looked for.
TOPICS = {value for name, value in vars(system_topics).items() if name.isupper()}
TOPICS -= {system_topics.SYSTEM_PREFIX}  # the topics of our own folds begin with it
NAMES = TOPICS | {properties.REAL_TOPIC, properties.REAL_QUEUE_ID} | properties.DELAYING - {"DELAY"}
SOURCES = python_files("gateway")


def spelled(tree: ast.Module) -> list[int]:
    """Return the lines with a text or bytes, other than a docstring, that has such a name in it."""
    lone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in lone:
            value = node.value
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            if isinstance(text, str) and any(name in text for name in NAMES):
                found.append(node.lineno)
    return found


def test_the_gateway_spells_none_of_them() -> None:
    found = {str(path): lines for path in SOURCES if (lines := spelled(parse(path)))}
    assert found == {}, "take the name from protocol.remoting.properties or system_topics"


@pytest.mark.parametrize("line", ['A = "REAL_TOPIC"', 'A = b"%bREAL_QID\\x01%d"'])
def test_a_name_is_noticed(line: str) -> None:
    assert spelled(ast.parse(line)) == [1]


def test_all_that_delay_a_message_are_found_by_one_part_of_their_names() -> None:
    assert all(properties.DELAYING_PART in name for name in properties.DELAYING)
