"""Every call of the Java Admin 4.3, one by one: what it answers, or why it cannot yet.

`calls/AdminCalls.java` makes each call on resources of its own and checks the result. A call that
is left out is made as well, and must fail: once it would pass, it no longer belongs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.driver import Refused
from behaviours.features import ADMIN
from behaviours.program import Broken, Program
from bench.peers.jars import pinned_version
from tests.gateway.server import RunningServer

HERE = Path(__file__).resolve().parent
CLIENT = f"kafka-clients {pinned_version(HERE / 'v4' / 'pom.xml')}"
SECONDS_MAX = 60

CALLS = (
    *("createTopics", "listTopics", "describeTopics", "deleteTopics", "createPartitions"),
    *("describeConfigs", "incrementalAlterConfigs", "listConfigResources"),
    *("listOffsets", "deleteRecords", "describeProducers"),
    *("alterConsumerGroupOffsets", "listConsumerGroupOffsets", "deleteConsumerGroupOffsets"),
    *("listConsumerGroups", "listGroups", "describeConsumerGroups", "describeClassicGroups"),
    *("removeMembersFromConsumerGroup", "deleteConsumerGroups"),
    *("describeCluster", "describeFeatures", "updateFeatures", "describeLogDirs"),
    *("describeReplicaLogDirs", "alterReplicaLogDirs", "describeMetadataQuorum", "electLeaders"),
    *("alterPartitionReassignments", "listPartitionReassignments", "metrics"),
    *("registerMetricForSubscription", "unregisterMetricFromSubscription"),
    *("listTransactions", "describeTransactions", "fenceProducers", "abortTransaction"),
    *("forceTerminateTransaction", "alterClientQuotas", "describeClientQuotas"),
    *("alterStreamsGroupOffsets", "listStreamsGroupOffsets", "deleteStreamsGroupOffsets"),
    "deleteStreamsGroups",
    "listClientMetricsResources",
)
NO_ACLS = "the server has no ACLs yet"
NO_SASL = "the server has no SASL yet"
NO_TOKENS = "the server has no delegation tokens"
NO_SHARES = "the server has no share groups yet"
NO_RAFT = "the server is one node and has no quorum to change"
EXCLUDED = {
    "clientInstanceId": "the server collects no telemetry of clients, as Kafka unless configured",
    "unregisterBroker": NO_RAFT,
    "addRaftVoter": NO_RAFT,
    "removeRaftVoter": NO_RAFT,
    "createAcls": NO_ACLS,
    "describeAcls": NO_ACLS,
    "deleteAcls": NO_ACLS,
    "describeUserScramCredentials": NO_SASL,
    "alterUserScramCredentials": NO_SASL,
    "createDelegationToken": NO_TOKENS,
    "describeDelegationToken": NO_TOKENS,
    "renewDelegationToken": NO_TOKENS,
    "expireDelegationToken": NO_TOKENS,
    "describeShareGroups": NO_SHARES,
    "listShareGroupOffsets": NO_SHARES,
    "alterShareGroupOffsets": NO_SHARES,
    "deleteShareGroupOffsets": NO_SHARES,
    "deleteShareGroups": NO_SHARES,
    "describeStreamsGroups": "the server has no groups of KIP-1071 yet",
}

pytestmark = [pytest.mark.java, pytest.mark.long]


class Calls:
    """The program's calls against one server."""

    def __init__(self, program: Program, bootstrap: str) -> None:
        self._program = program
        self._number = program.ask("calls", bootstrap=bootstrap).result(SECONDS_MAX)

    def ask(self, do: str, **fields: object) -> Any:
        return self._program.ask(do, on=self._number, **fields).result(SECONDS_MAX)


@pytest.fixture(scope="module")
def calls(server: RunningServer) -> Iterator[Calls]:
    try:
        program = Program(java_program(HERE, "v4", "Program", "calls"))
    except CannotRun as reason:
        leave_out(reason)
    yield Calls(program, server.bootstrap)
    program.end()


def test_no_call_of_the_client_is_forgotten(calls: Calls) -> None:
    assert set(calls.ask("methods")) == {*CALLS, *EXCLUDED}
    assert not set(CALLS) & EXCLUDED.keys()


@pytest.mark.feature("{name}", ADMIN)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_does_what_it_says(calls: Calls, name: str) -> None:
    assert isinstance(calls.ask("call", name=name), str)


@pytest.mark.feature("{name}", ADMIN)
@pytest.mark.parametrize("name", EXCLUDED)
def test_a_call_that_is_left_out_would_fail(calls: Calls, name: str) -> None:
    with pytest.raises((Refused, Broken)):
        calls.ask("call", name=name)
    pytest.skip(EXCLUDED[name])
