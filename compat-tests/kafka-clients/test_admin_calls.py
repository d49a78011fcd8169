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
from behaviours.login import login_fields
from behaviours.program import Broken, Program
from behaviours.secured_server import SecuredServer
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
    *("deleteStreamsGroups", "describeStreamsGroups"),
    "listClientMetricsResources",
)
SECURITY = (
    *("createAcls", "describeAcls", "deleteAcls"),
    *("describeUserScramCredentials", "alterUserScramCredentials"),
    *("createDelegationToken", "describeDelegationToken"),
    *("renewDelegationToken", "expireDelegationToken"),
)
"""Of an administrator who has logged in."""
NO_SHARES = "the program has no share group to ask about"
NO_RAFT = "the server is one node and has no quorum to change"
EXCLUDED = {
    "clientInstanceId": "the server collects no telemetry of clients, as Kafka unless configured",
    "unregisterBroker": NO_RAFT,
    "addRaftVoter": NO_RAFT,
    "removeRaftVoter": NO_RAFT,
    "describeShareGroups": NO_SHARES,
    "listShareGroupOffsets": NO_SHARES,
    "alterShareGroupOffsets": NO_SHARES,
    "deleteShareGroupOffsets": NO_SHARES,
    "deleteShareGroups": NO_SHARES,
}

pytestmark = [pytest.mark.java, pytest.mark.long]


class Calls:
    """The program's calls against one server."""

    def __init__(self, program: Program, bootstrap: str) -> None:
        self._program = program
        fields = login_fields(bootstrap)
        self._number = program.ask("calls", bootstrap=bootstrap, **fields).result(SECONDS_MAX)

    def ask(self, do: str, **fields: object) -> Any:
        return self._program.ask(do, on=self._number, **fields).result(SECONDS_MAX)


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    try:
        found = Program(java_program(HERE, "v4", "Program", "calls"))
    except CannotRun as reason:
        leave_out(reason)
    yield found
    found.end()


@pytest.fixture(scope="module")
def calls(program: Program, server: RunningServer) -> Calls:
    return Calls(program, server.bootstrap)


@pytest.fixture(scope="module")
def administrator(program: Program, secured: SecuredServer) -> Calls:
    return Calls(program, secured.address(secured.administrator()))


def test_no_call_of_the_client_is_forgotten(calls: Calls) -> None:
    assert set(calls.ask("methods")) == {*CALLS, *SECURITY, *EXCLUDED}
    assert not {*CALLS, *SECURITY} & EXCLUDED.keys()


@pytest.mark.feature("{name}", ADMIN)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_does_what_it_says(calls: Calls, name: str) -> None:
    assert isinstance(calls.ask("call", name=name), str)


@pytest.mark.feature("{name}", ADMIN)
@pytest.mark.parametrize("name", SECURITY)
def test_a_call_about_users_and_grants_does_what_it_says(administrator: Calls, name: str) -> None:
    assert isinstance(administrator.ask("call", name=name), str)


@pytest.mark.feature("{name}", ADMIN)
@pytest.mark.parametrize("name", EXCLUDED)
def test_a_call_that_is_left_out_would_fail(calls: Calls, name: str) -> None:
    with pytest.raises((Refused, Broken)):
        calls.ask("call", name=name)
    pytest.skip(EXCLUDED[name])
