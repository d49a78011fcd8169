"""CreateAcls, DescribeAcls and DeleteAcls: Kafka's filters find and remove what was added."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers import delete_acls
from rockgate.gateway.kafka.handlers.create_acls import CreateAcls
from rockgate.gateway.kafka.handlers.delete_acls import DeleteAcls
from rockgate.gateway.kafka.handlers.describe_acls import DescribeAcls
from rockgate.gateway.security import stored_grants
from rockgate.gateway.security.audit import Audit
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_acls import AclCreation, CreateAclsRequest
from rockgate.protocol.kafka.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from rockgate.protocol.kafka.messages.describe_acls import DescribeAclsRequest
from rockgate.store.errors import StoreFull

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3
MANY = budget("acl_bindings")
HELD_SECONDS_MAX = 0.05


def creation(name: str = "orders", pattern: int = LITERAL, **more: Any) -> AclCreation:
    given: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**{**given, **more})


def wanted(name: str | None = None, pattern: int = ANY, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return {**given, **more}


class Granting(Admin):
    """Handlers of ACLs over a store in memory."""

    @property
    def grants(self) -> stored_grants.StoredGrants:
        return self.security.grants

    def creating(self) -> CreateAcls:
        return CreateAcls(grants=self.grants, durability=self.durability, audit=Audit())

    def deleting(self) -> DeleteAcls:
        return DeleteAcls(grants=self.grants, durability=self.durability, audit=Audit())

    async def create(self, *creations: AclCreation, version: int = 3) -> list[Any]:
        request = CreateAclsRequest(creations=[*creations])
        answer = await seen(self.creating().handle(request, call(version)), version)
        return [(each.error_code, each.error_message) for each in answer.results]

    async def describe(self, version: int = 3, **given: Any) -> list[tuple[Any, ...]]:
        answer = await seen(
            DescribeAcls(self.grants).handle(DescribeAclsRequest(**given), call(version)), version
        )
        assert answer.error_code == ErrorCode.NONE
        return sorted(
            (each.resource_type, each.resource_name, each.pattern_type, acl.principal)
            for each in answer.resources
            for acl in each.acls
        )

    async def delete(self, *filters: dict[str, Any], version: int = 3) -> Any:
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**each) for each in filters])
        answer = await seen(self.deleting().handle(request, call(version)), version)
        return answer.filter_results


OK = (0, None)


async def test_what_is_created_is_described_and_a_second_time_changes_nothing() -> None:
    world = Granting()
    assert await world.create(creation(), creation("a-", PREFIXED), creation()) == [OK] * 3
    assert await world.describe(**wanted()) == [
        (TOPIC, "a-", PREFIXED, "User:alice"),
        (TOPIC, "orders", LITERAL, "User:alice"),
    ]
    end = world.store.log.end
    assert await world.create(creation()) == [OK]
    assert world.store.log.end == end
    world.reopen()
    assert len(world.grants) == 2


async def test_a_filter_finds_what_kafka_s_would() -> None:
    world = Granting()
    await world.create(
        creation("a"), creation("ab"), creation("*"), creation("a", PREFIXED), creation("b")
    )

    async def names(name: str | None, pattern: int) -> list[tuple[str, int]]:
        found = await world.describe(**wanted(name, pattern, resource_type_filter=TOPIC))
        unindexed = await world.describe(**wanted(name, pattern))
        assert found == unindexed
        return [(each[1], each[2]) for each in found]

    assert await names("ab", MATCH) == [("*", LITERAL), ("a", PREFIXED), ("ab", LITERAL)]
    assert await names("ab", LITERAL) == [("ab", LITERAL)]
    assert await names("a", ANY) == [("a", LITERAL), ("a", PREFIXED)]
    assert await names("a", PREFIXED) == [("a", PREFIXED)]
    assert await names("ab", PREFIXED) == []
    assert await names(None, PREFIXED) == [("a", PREFIXED)]
    assert len(await names(None, MATCH)) == 5
    assert await world.describe(**wanted(principal_filter="User:bob")) == []
    assert await world.describe(**wanted(operation=WRITE)) == []
    assert await world.describe(**wanted(permission_type=DENY)) == []
    assert await world.describe(**wanted(host_filter="10.0.0.1")) == []
    assert await world.describe(**wanted(resource_type_filter=GROUP)) == []
    assert len(await world.describe(**wanted(host_filter="*", operation=READ))) == 5


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (creation(resource_type=ANY), "Invalid resourceType ANY"),
        (creation(resource_type=99), "Invalid resourceType UNKNOWN"),
        (creation(pattern=MATCH), "Invalid patternType MATCH"),
        (creation(operation=ANY), "Invalid operation ANY"),
        (creation(permission_type=ANY), "Invalid permissionType ANY"),
        (creation(""), "Invalid empty resource name"),
        (
            creation(resource_type=CLUSTER),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (creation("x" * 2_049), "Resource name exceeds 2,048 characters."),
        (
            creation(principal="alice"),
            "Principal must be a principal such as User:alice, not 'alice'.",
        ),
        (creation(host=""), "Host must have 1 to 255 characters."),
    ],
)
async def test_an_acl_that_cannot_be_is_rejected_and_the_others_are_not(
    asked: AclCreation, reason: str
) -> None:
    world = Granting()
    results = await world.create(creation("a"), asked, creation("b"))
    assert results == [OK, (ErrorCode.INVALID_REQUEST, reason), OK]
    assert len(world.grants) == 2


async def test_every_filter_is_answered_with_what_it_removed() -> None:
    world = Granting()
    await world.create(creation("a"), creation("b"), creation("c"))
    first, second, third, bad = await world.delete(
        wanted("a"), wanted(resource_type_filter=TOPIC), wanted("z"), wanted(operation=0)
    )
    assert [each.resource_name for each in first.matching_acls] == ["a"]
    assert sorted(each.resource_name for each in second.matching_acls) == ["a", "b", "c"]
    assert third.matching_acls == [] and third.error_code == 0
    assert bad.error_code == ErrorCode.INVALID_REQUEST
    assert len(world.grants) == 0
    assert {each.error_code for each in second.matching_acls} == {0}


async def test_without_authorization_security_is_disabled() -> None:
    world = Granting()
    reason = "No Authorizer is configured."
    described = DescribeAcls(None).handle(DescribeAclsRequest(**wanted()), call(3))
    assert not isinstance(described, Awaitable)
    assert (described.error_code, described.error_message) == (54, reason)
    parts: dict[str, Any] = {
        "grants": None,
        "durability": world.durability,
        "audit": Audit(),
    }
    created = CreateAcls(**parts).handle(CreateAclsRequest(creations=[creation()]), call(3))
    created = await seen(created, 3)
    assert [(each.error_code, each.error_message) for each in created.results] == [(54, reason)]
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted())])
    deleted = DeleteAcls(**parts).handle(request, call(3))
    deleted = await seen(deleted, 3)
    assert [each.error_code for each in deleted.filter_results] == [54]


async def test_without_room_in_the_log_nothing_is_granted_or_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Granting()
    await world.create(creation("a"))

    def full(*_: object, **__: object) -> None:
        raise StoreFull("no space left on device")

    with monkeypatch.context() as patch:
        for name in ("append", "append_batch", "append_group", "append_messages"):
            patch.setattr(world.store.log, name, full)
        [(code, _)] = await world.create(creation("b"))
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        [result] = await world.delete(wanted())
        assert [each.error_code for each in result.matching_acls] == [code]
        assert [each[1] for each in await world.describe(**wanted())] == ["a"]
    assert await world.create(creation("b")) == [OK]
    [result] = await world.delete(wanted())
    assert [each.error_code for each in result.matching_acls] == [0, 0]


async def test_more_acls_than_there_may_be_are_a_policy_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_grants, "GRANTS_MAX", 1)
    world = Granting()
    assert await world.create(creation("a")) == [OK]
    [(code, reason)] = await world.create(creation("b"))
    assert code == ErrorCode.POLICY_VIOLATION
    assert reason == "The maximum of 1 grants has been reached."


async def test_changes_are_audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rockgate.gateway.security.audit")
    world = Granting()
    await world.create(creation("a-", PREFIXED))
    await world.delete(wanted())
    assert [record.getMessage() for record in caplog.records] == [
        f"changed principal=User:ANONYMOUS host=b api={api}"
        " what='ALLOW User:alice from * READ prefixed TOPIC:a-' outcome=ok"
        for api in ("CREATE_ACLS", "DELETE_ACLS")
    ]


class Watching:
    """Measures how long the loop is held at most, in processor time of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.thread_time()
        self._handle = asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._last)
        self._last = time.thread_time()
        self._handle = asyncio.get_running_loop().call_soon(self._step)

    def stop(self) -> float:
        self._handle.cancel()
        return self.longest


@pytest.fixture
def frozen() -> Iterator[None]:
    """Collect no garbage, as a server that has frozen its heap: what is measured is the work."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("frozen")
async def test_many_acls_do_not_hold_the_loop() -> None:
    world = Granting()
    many = [creation(f"topic-{n}", principal=f"User:u{n % 7}") for n in range(MANY // 2)]
    many += [creation("one", principal=f"User:u{n}") for n in range(MANY // 2)]
    create = CreateAclsRequest(creations=many)
    watching = Watching()
    await _done(world.creating().handle(create, call(3)))
    assert watching.stop() < HELD_SECONDS_MAX
    assert len(world.grants) == MANY
    watching = Watching()
    await _done(DescribeAcls(world.grants).handle(DescribeAclsRequest(**wanted()), call(3)))
    assert watching.stop() < HELD_SECONDS_MAX
    watching = Watching()
    delete = DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted("one", resource_type_filter=2))])
    await _done(world.deleting().handle(delete, call(3)))
    delete = DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted())])
    await _done(world.deleting().handle(delete, call(3)))
    assert watching.stop() < HELD_SECONDS_MAX
    assert len(world.grants) == 0


async def _done(answer: Any) -> None:
    if isinstance(answer, Awaitable):
        await answer


async def test_a_filter_with_a_name_and_any_type_is_compared_with_acls_of_that_name_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delete_acls, "COMPARED_MAX", 10)
    world = Granting()
    groups = [creation(f"g{number}", resource_type=GROUP) for number in range(10)]
    await world.create(*groups, *(creation(f"g{number}") for number in range(10)))
    results = await world.delete(*(wanted(f"g{number}") for number in range(5)))
    assert [len(each.matching_acls) for each in results] == [2] * 5


async def test_filters_that_take_too_many_comparisons_remove_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delete_acls, "COMPARED_MAX", 10)
    world = Granting()
    await world.create(*(creation(f"t{number}") for number in range(6)))
    results = await world.delete(*[wanted(principal_filter="User:bob")] * 2)
    assert {each.error_code for each in results} == {ErrorCode.POLICY_VIOLATION}
    results = await world.delete(wanted("t1"), wanted(principal_filter="User:bob"))
    assert [len(each.matching_acls) for each in results] == [1, 0]
    assert len(world.grants) == 5
