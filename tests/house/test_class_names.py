"""One class name, one meaning: a reader of a room need not ask which of two is meant."""

import ast
from collections import defaultdict

import pytest
from tests.house.checkout import ROOT, python_files

BOTH_WIRES = {"Dispatch", "Dispatcher", "Peer", "RequestSource", "Session", "Sessions"}
"""What Kafka's wire and RocketMQ's each have one of."""
EACH_GROUP_PROTOCOL = {"Member"}
"""What each protocol of Kafka's groups has one of, in a package of its own."""


@pytest.mark.parametrize("room", ["gateway", "cli", "sdk"])
def test_a_room_has_one_class_of_a_name(room: str) -> None:
    places = defaultdict(set)
    for path in python_files(room):
        for each in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places[each.name].add(path.as_posix())
    twice = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {name: twice[name] for name in twice.keys() - BOTH_WIRES - EACH_GROUP_PROTOCOL} == {}
    assert "Kind" not in places, "the kind of what?"
