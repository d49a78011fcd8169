"""Decisions of a connection: aliases of topics, cached decisions, authorized operations."""

from tests.gateway.kafka.authorization.granted import ALICE, GrantList, Refusals, allow

from rockgate.gateway.kafka.authorization.permissions import CACHED_MAX, Permissions
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.net.address import Address
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.keys import ApiKey

OP, TYPE = AclOperation, AclResourceType
READ_GROUP = allow(ALICE, OP.READ, TYPE.GROUP, "g")
WRITE_TOPIC = allow(ALICE, OP.WRITE, TYPE.TOPIC, "t")


def peer() -> Peer:
    made = Peer(connection_id=1, local=Address("a", 1), remote=Address("b", 2))
    made.become(ALICE)
    return made


def test_retry_and_dead_letter_topics_are_decided_by_their_group() -> None:
    permissions, client = Permissions(GrantList([READ_GROUP]), Refusals()), peer()
    for name in ("rmq.retry.g", "rmq.dlq.g"):
        for operation in (OP.READ, OP.WRITE, OP.DESCRIBE, OP.DESCRIBE_CONFIGS):
            assert permissions.may(client, operation, TYPE.TOPIC, name)
        for operation in (OP.DELETE, OP.ALTER, OP.ALTER_CONFIGS, OP.CREATE):
            assert not permissions.may(client, operation, TYPE.TOPIC, name)
    assert not permissions.may(client, OP.READ, TYPE.TOPIC, "rmq.retry.other")
    assert not permissions.may(client, OP.READ, TYPE.TOPIC, "rmq.g")


def test_a_decision_is_asked_once_until_grants_change() -> None:
    access = GrantList([WRITE_TOPIC])
    permissions, client = Permissions(access, Refusals()), peer()
    assert all(permissions.may_write(client, "t", "t") for _ in range(10))
    assert access.asked_count == 1
    access.revoke(WRITE_TOPIC)
    assert not permissions.may_write(client, "t", "t")
    access.add(WRITE_TOPIC)
    assert permissions.may_write(client, "t", "t")


def test_a_refusal_is_never_cached() -> None:
    access = GrantList()
    permissions, client = Permissions(access, Refusals()), peer()
    assert not any(permissions.may_read(client, "t", "t") for _ in range(3))
    assert access.asked_count == 3 and not client.readable


def test_another_principal_does_not_inherit_decisions() -> None:
    permissions, client = Permissions(GrantList([WRITE_TOPIC]), Refusals()), peer()
    assert permissions.may_write(client, "t", "t")
    client.become(Principal.user("bob"))
    assert not permissions.may_write(client, "t", "t")


def test_cached_decisions_are_bounded() -> None:
    permissions, client = Permissions(GrantList(), Refusals()), peer()
    client.become(Principal.user("admin"))
    for number in range(3 * CACHED_MAX):
        assert permissions.may_read(client, f"t-{number}", f"t-{number}")
    assert 0 < len(client.readable) <= CACHED_MAX


def test_operations_are_those_that_are_allowed() -> None:
    permissions, client = Permissions(GrantList([WRITE_TOPIC]), Refusals()), peer()
    bits = permissions.operations(client, TYPE.TOPIC, "t")
    assert bits == 1 << OP.WRITE | 1 << OP.DESCRIBE


def test_only_permit_writes_a_refusal_down() -> None:
    audit = Refusals()
    permissions, client = Permissions(GrantList(), audit), peer()
    assert not permissions.may(client, OP.READ, TYPE.TOPIC, "t")
    assert audit.found == []
    assert not permissions.permit(client, ApiKey.FETCH, OP.READ, TYPE.TOPIC, "t")
    assert audit.found == [("User:alice", "FETCH", "READ", "TOPIC:t")]
