"""Asks Apache Kafka, with SASL and its StandardAuthorizer, what every cell of the matrix gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench.peers.kafka import KafkaPeer
from tests.differential.access.answers import reduced
from tests.differential.access.cells import Cell
from tests.differential.access.group_cases import sharing
from tests.differential.player import NOT_YET, Address, Wire
from tests.waiting import wait_until

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import (
    create_acls,
    create_topics,
    describe_acls,
    find_coordinator,
    metadata,
    sasl_authenticate,
    sasl_handshake,
    share_group_heartbeat,
)
from rockgate.protocol.kafka.schema import declaration_of

SECRET = "secret"  # of a broker that lives for one test
ADMIN = "admin"
PIECE = 50


def settings(users: Sequence[str]) -> dict[str, str]:
    """The broker's settings: a listener with SASL/PLAIN, and ACLs."""
    logins = " ".join(f'user_{each}="{SECRET}"' for each in {ADMIN, *users})
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' username="{ADMIN}" password="{SECRET}" {logins};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "delegation.token.secret.key": SECRET,
    }


def broker(cells: Sequence[Cell]) -> KafkaPeer:
    """Apache Kafka with the users of the cells, not started."""
    return KafkaPeer(settings=settings(sorted({each.user for each in cells})))


def login(address: Address, user: str) -> Wire:
    """A connection of a user."""
    wire = Wire(address)
    shaken = wire.ask(
        sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"),
        sasl_handshake.SaslHandshakeResponse,
        1,
    )
    assert shaken.error_code == 0
    token = f"\0{user}\0{SECRET}".encode()
    done = wire.ask(
        sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token),
        sasl_authenticate.SaslAuthenticateResponse,
        1,
    )
    assert done.error_code == 0, done.error_message
    return wire


def prepare(wire: Wire, cells: Sequence[Cell]) -> list[Cell]:
    """Create topics and grants; the cells, with the ids of their topics."""
    for at in range(0, len(cells), PIECE):
        some = cells[at : at + PIECE]
        wire.ask(
            create_topics.CreateTopicsRequest(
                topics=[
                    create_topics.CreatableTopic(
                        name=each.topic, num_partitions=1, replication_factor=1
                    )
                    for each in some
                ],
                timeout_ms=60_000,
            ),
            create_topics.CreateTopicsResponse,
            7,
        )
    grants = [grant for each in cells for grant in each.grants()]
    for at in range(0, len(grants), PIECE):
        done = wire.ask(
            create_acls.CreateAclsRequest(
                creations=[
                    create_acls.AclCreation(
                        resource_type=each.resource_type,
                        resource_name=each.resource_name,
                        resource_pattern_type=each.pattern_type,
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission,
                    )
                    for each in grants[at : at + PIECE]
                ]
            ),
            create_acls.CreateAclsResponse,
            3,
        )
        results: list[Any] = [*done.results]
        assert not any(each.error_code for each in results)
    everything = describe_acls.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    def are_known() -> bool:
        found: list[Any] = [*wire.ask(everything, describe_acls.DescribeAclsResponse, 3).resources]
        return sum(len(each.acls) for each in found) == len(set(grants))

    wait_until(are_known, "the broker knows all grants")
    ids = topic_ids(wire, cells)
    for type_ in (0, 1):
        wait_for_coordinator(wire, type_)
    return [replace(each, topic_id=ids[each.topic]) for each in cells]


def topic_ids(wire: Wire, cells: Sequence[Cell]) -> dict[str, bytes]:
    """The ids of all topics, once each has a leader."""
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=each.topic) for each in cells],
        allow_auto_topic_creation=False,
    )
    found: dict[str, bytes] = {}

    def are_led() -> bool:
        topics = wire.ask(request, metadata.MetadataResponse, 12).topics
        found.update({str(each.name): each.topic_id for each in topics})  # type: ignore[union-attr]
        return not any(
            each.error_code or any(part.error_code for part in each.partitions)  # type: ignore[union-attr]
            for each in topics
        )

    wait_until(are_led, "all topics have leaders")
    return found


def wait_for_coordinator(wire: Wire, type_: int) -> None:
    """Wait until coordinators answer."""
    request = find_coordinator.FindCoordinatorRequest(key_type=type_, coordinator_keys=["warm"])

    def is_there() -> bool:
        answer = wire.ask(request, find_coordinator.FindCoordinatorResponse, 4)
        return answer.coordinators[0].error_code == 0

    wait_until(is_there, "the coordinator is there")


def ask(wire: Wire, cell: Cell, make: Callable[[Cell], Any], version: int) -> Any:
    """The reduced answer to a request of a cell; asked again while a coordinator loads."""
    found: list[Any] = []
    names = {each.name for each in NOT_YET}

    def is_final() -> bool:
        request = make(cell)
        key = declaration_of(type(request)).key
        assert key is not None
        response = APIS[ApiKey(key)].response
        answer = reduced(wire.ask(request, response, version), cell)
        is_not_yet = any(f"'{name}'" in repr(answer) for name in names)
        if not is_not_yet:
            found.append(answer)
        return not is_not_yet

    wait_until(is_final, f"{cell.label} has an answer")
    return found[0]


def wait_for_assignment(wire: Wire, cell: Cell) -> None:
    """Wait until the member of a share group has what it reads, which takes some heartbeats."""

    def has_partitions() -> bool:
        request = sharing(cell)
        answer = wire.ask(request, share_group_heartbeat.ShareGroupHeartbeatResponse, 1)
        assert answer.error_code == 0, answer.error_message
        return bool(answer.assignment and answer.assignment.topic_partitions)

    wait_until(has_partitions, f"{cell.label} has an assignment")


def asked(address: Address, cells: Sequence[Cell]) -> dict[str, Any]:
    """The answers to all cells."""
    admin = login(address, ADMIN)
    answers = {}
    for cell in prepare(admin, cells):
        for version, make in cell.case.first:
            ask(admin, cell, make, version)
            if make is sharing:
                wait_for_assignment(admin, cell)
        wire = login(address, cell.user)
        answers[cell.label] = ask(wire, cell, cell.case.make, cell.case.version)
        wire.close()
    admin.close()
    return answers
