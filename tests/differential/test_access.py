"""The matrix of authorization: our answers are those that Apache Kafka gave, cell by cell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.differential.access.answers import reduced
from tests.differential.access.broker import asked, broker
from tests.differential.access.cases import cells
from tests.differential.access.cells import Cell
from tests.differential.access.record import FILE
from tests.gateway.kafka.authorization.granted import ADMIN, GuardedServer
from tests.jdk import Jdk

from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic

_NOT_THERE = "Operations of a topic that does not exist are not computed."
_BY_ID = "By id a topic that may not be described is unknown, so that ids are not confirmed."
_AT_ONCE = "A new topic is there in the response that created it."
_WHOLE = "The error of the whole request is not repeated for its parts."
DEPARTS: dict[str, str] = {
    "Metadata v12 grant": _NOT_THERE,
    "Metadata v12 super": _NOT_THERE,
    "DescribeTopicPartitions v0 grant": _NOT_THERE,
    "DescribeTopicPartitions v0 super": _NOT_THERE,
    "Metadata by id v12 none": _BY_ID,
    "Metadata by id v12 wrong": _BY_ID,
    "Metadata by id v12 deny": _BY_ID,
    "Metadata that creates v9 grant": _AT_ONCE,
    "Metadata that creates v9 super": _AT_ONCE,
    "DescribeConfigs v4 super": "The node of the test has another number.",
    "AlterPartitionReassignments v0 none": _WHOLE,
    "AlterPartitionReassignments v0 wrong": _WHOLE,
    "AlterPartitionReassignments v0 deny": _WHOLE,
    "DescribeUserScramCredentials v0 none": _WHOLE,
    "DescribeUserScramCredentials v0 wrong": _WHOLE,
    "DescribeUserScramCredentials v0 deny": _WHOLE,
}
"""Cells that differ, and why."""


async def prepared(server: GuardedServer, every: list[Cell]) -> list[Cell]:
    """The cells, with topics and their ids."""
    admin = server.peer(ADMIN)
    topics = [
        CreatableTopic(name=each.topic, num_partitions=1, replication_factor=1) for each in every
    ]
    await server.ask(admin, CreateTopicsRequest(topics=topics, timeout_ms=1_000), 7)
    wanted = [MetadataRequestTopic(name=each.topic) for each in every]
    found = (await server.ask(admin, MetadataRequest(topics=wanted), 12)).topics
    ids = {each.name: each.topic_id for each in found}
    return [replace(each, topic_id=ids[each.topic]) for each in every]


async def answers() -> dict[str, Any]:
    """Our answers to all cells."""
    every = cells()
    found = {}
    async with GuardedServer.running(grant for each in every for grant in each.grants()) as server:
        admin = server.peer(ADMIN)
        for cell in await prepared(server, every):
            for version, make in cell.case.first:
                await server.ask(admin, make(cell), version)
            peer = server.peer(Principal.user(cell.user))
            response = await server.ask(peer, cell.case.make(cell), cell.case.version)
            found[cell.label] = reduced(response, cell)
    return found


@pytest.mark.java
@pytest.mark.long
def test_apache_kafka_still_gives_the_recorded_answers(java: Jdk) -> None:
    every = cells()
    with broker(every) as kafka:
        found = asked(kafka.address, every)
    assert json.loads(json.dumps(found)) == json.loads(FILE.read_text())["answers"]


@pytest.mark.row("SEC-2")
async def test_every_cell_gets_the_answer_of_apache_kafka() -> None:
    recorded = json.loads(FILE.read_text())["answers"]
    found = await answers()
    differing = {
        label: {"ours": answer, "kafka": recorded.get(label)}
        for label, answer in found.items()
        if answer != recorded.get(label) and label not in DEPARTS
    }
    assert not differing, json.dumps(differing, indent=1)
    assert found.keys() == recorded.keys()


async def test_every_departure_is_still_one() -> None:
    recorded = json.loads(FILE.read_text())["answers"]
    found = await answers()
    assert [label for label in DEPARTS if found[label] == recorded[label]] == []
