from collections.abc import Sequence

import pytest

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.topics.replicas import Replicas, check_numbering
from rockgate.protocol.kafka.errors import ErrorCode

NODE_ID = 7


@pytest.mark.parametrize("factor", [-1, 1, 2, 3])
def test_what_clusters_usually_have_is_taken(factor: int) -> None:
    Replicas(NODE_ID, is_strict=False).check_factor(factor)


@pytest.mark.parametrize("factor", [-2, 0, 4, 32_767])
def test_other_factors_are_refused(factor: int) -> None:
    with pytest.raises(
        RequestError, match=r"must be -1 or from 1 to 3: there is a single broker"
    ) as caught:
        Replicas(NODE_ID, is_strict=False).check_factor(factor)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(("factor", "is_taken"), [(-1, True), (1, True), (2, False), (3, False)])
def test_strictly_only_what_there_is_is_taken(factor: int, is_taken: bool) -> None:
    replicas = Replicas(NODE_ID, is_strict=True)
    if is_taken:
        replicas.check_factor(factor)
    else:
        with pytest.raises(RequestError, match="replication_strict"):
            replicas.check_factor(factor)


def test_partitions_may_be_assigned_to_this_node() -> None:
    Replicas(NODE_ID, is_strict=True).check_assignment([[NODE_ID], [NODE_ID]])
    check_numbering([1, 0, 2])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([[NODE_ID], []], "no assigned replicas"),
        ([[1]], "Broker 1 does not exist; this broker is 7."),
        ([[NODE_ID, 1]], "Broker 1 does not exist; this broker is 7."),
        ([[NODE_ID, NODE_ID]], "more than once"),
    ],
)
def test_any_other_assignment_is_refused(nodes: Sequence[Sequence[int]], reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        Replicas(NODE_ID, is_strict=False).check_assignment(nodes)
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [
        ([0, 0], "more than once"),
        ([0, 2], "must be consecutive, starting at 0"),
        ([1], "must be consecutive"),
        ([-1, 0], "must be consecutive"),
    ],
)
def test_partitions_are_numbered_from_zero_without_a_gap(
    indexes: Sequence[int], reason: str
) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        check_numbering(indexes)
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
