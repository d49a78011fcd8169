"""FindCoordinator names this node, for groups."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.groups.coordinator import read
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.embedded.placement import SingleNode
from rockgate.gateway.kafka.handlers.find_coordinator import FindCoordinator
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

HANDLER = FindCoordinator(SingleNode(node_id=7, leader_epoch=0))


def ask(version: int, key_type: int = 0) -> FindCoordinatorResponse:
    request = FindCoordinatorRequest(key="a", key_type=key_type, coordinator_keys=["a", "b"])
    return read(HANDLER.handle(request, call(version)), FindCoordinatorResponse, version)


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_with_this_node(version: int) -> None:
    response = ask(version)
    assert (response.error_code, response.node_id) == (0, 7)
    assert (response.host, response.port) == ("here", 9092)


@pytest.mark.parametrize("version", range(4, 7))
def test_many_keys_are_answered_each(version: int) -> None:
    found = ask(version).coordinators
    assert [(each.key, each.node_id, each.host, each.port) for each in found] == [
        ("a", 7, "here", 9092),
        ("b", 7, "here", 9092),
    ]


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_what_has_no_coordinator_here_is_refused_with_a_reason(key_type: int) -> None:
    old = ask(3, key_type)
    assert (old.error_code, old.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    assert old.error_message
    assert [each.error_code for each in ask(6, key_type).coordinators] == [42, 42]
