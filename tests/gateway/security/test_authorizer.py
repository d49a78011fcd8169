"""The decision is Kafka's: a reference that compares every grant agrees, whatever is granted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.journals import MemoryJournal

from rockgate.gateway.security import authorizer as authorizer_module
from rockgate.gateway.security.authorizer import CACHED_CHARS_MAX, Authorizer
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.gateway.security.stored_grants import StoredGrants
from rockgate.gateway.security.users import StoredUsers, User, UserStatus, UserType

pytestmark = pytest.mark.row("SEC-2")

ALICE, BOB = Principal.user("alice"), Principal.user("bob")
HOST, OTHER_HOST = "10.0.0.1", "10.0.0.2"
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALLOW, DENY = Permission.ALLOW, Permission.DENY
NAMES = ["a", "ab", "abc", "b", "*", "hardcode", "h"]

GRANTS = st.builds(
    Grant,
    resource_type=st.sampled_from([TOPIC, GROUP]),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*"]),
    host=st.sampled_from([HOST, OTHER_HOST, "*"]),
    operation=st.sampled_from([op for op in AclOperation if op >= AclOperation.ALL]),
    permission=st.sampled_from([ALLOW, DENY]),
)


class Deciding:
    """Users, grants and the authorizer over them."""

    def __init__(self, *, is_open: bool = False, super_users: Iterable[str] = ()) -> None:
        journal = MemoryJournal()
        self.grants, self.users = StoredGrants(journal), StoredUsers(journal)
        journal.attach(self.grants.fold, self.users.fold)
        self.access = Authorizer(
            index=self.grants.index,
            users=self.users,
            super_users=frozenset(super_users),
            allows_unmentioned=is_open,
        )
        self.grants.on_changed.append(self.access.changed)
        self.users.on_changed.append(lambda names: self.access.changed())

    def may(self, who: Principal, operation: AclOperation, name: str, host: str = HOST) -> bool:
        return self.access.may(who, host, operation, TOPIC, name)


def grant(
    name: str = "orders",
    operation: AclOperation = READ,
    permission: Permission = ALLOW,
    *,
    who: str = "User:alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
) -> Grant:
    return Grant(TOPIC, name, pattern, who, host, operation, permission)


# The reference: Kafka's rules, one grant after the other


def is_about(each: Grant, type_: AclResourceType, name: str) -> bool:
    if each.resource_type != type_:
        return False
    if each.pattern_type == PatternType.PREFIXED:
        return name.startswith(each.resource_name)
    return each.resource_name in (name, "*")


def is_for(each: Grant, who: Principal, host: str) -> bool:
    return each.principal in (f"User:{who.name}", "User:*") and each.host in (host, "*")


def reference(
    grants: Iterable[Grant],
    who: Principal,
    operation: AclOperation,
    type_: AclResourceType,
    name: str,
    *,
    is_open: bool,
) -> bool:
    about = [each for each in grants if is_about(each, type_, name)]
    if not about:
        return is_open
    mine = [each for each in about if is_for(each, who, HOST)]
    named = {operation, AclOperation.ALL}
    if any(each.permission == DENY and each.operation in named for each in mine):
        return False
    if operation == DESCRIBE:
        named |= {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER}
    if operation == AclOperation.DESCRIBE_CONFIGS:
        named |= {AclOperation.ALTER_CONFIGS}
    return any(each.permission == ALLOW and each.operation in named for each in mine)


def reference_of_any(
    grants: Iterable[Grant],
    who: Principal,
    operation: AclOperation,
    type_: AclResourceType,
    *,
    is_open: bool,
) -> bool:
    if reference(grants, who, operation, type_, "hardcode", is_open=is_open):
        return True
    mine = [
        each
        for each in grants
        if each.resource_type == type_
        and is_for(each, who, HOST)
        and each.operation in (operation, AclOperation.ALL)
    ]
    literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
    denied = {(each.resource_name, each.pattern_type) for each in mine if each.permission == DENY}
    allowed = {(each.resource_name, each.pattern_type) for each in mine if each.permission == ALLOW}
    if ("*", literal) in denied:
        return False
    if ("*", literal) in allowed:
        return True
    for name, pattern in allowed:
        if pattern == literal and (name, literal) in denied:
            continue
        if not any((name[:n], prefixed) in denied for n in range(1, len(name) + 1)):
            return True
    return False


@settings(max_examples=budget("property_examples"), deadline=None)
@given(
    st.lists(GRANTS, max_size=12),
    st.lists(GRANTS, max_size=6),
    st.sampled_from([ALICE, BOB, ANONYMOUS]),
    st.sampled_from([op for op in AclOperation if op > AclOperation.ALL]),
    st.sampled_from([TOPIC, GROUP]),
    st.booleans(),
)
def test_every_decision_is_the_reference_s(
    added: list[Grant],
    removed: list[Grant],
    who: Principal,
    operation: AclOperation,
    type_: AclResourceType,
    is_open: bool,
) -> None:
    world = Deciding(is_open=is_open)
    kept = set(added)
    world.grants.add(added)
    for step in ((), removed, added[:3]):
        world.grants.remove(step)
        kept.difference_update(step)
        assert set(world.grants) == kept
        for name in NAMES:
            expected = reference(kept, who, operation, type_, name, is_open=is_open)
            # Twice: the second answer is the cached one.
            for _ in range(2):
                assert world.access.may(who, HOST, operation, type_, name) is expected
        expected = reference_of_any(kept, who, operation, type_, is_open=is_open)
        for _ in range(2):
            assert world.access.may_on_any(who, HOST, operation, type_) is expected


def test_nothing_is_allowed_without_a_grant() -> None:
    assert not Deciding().may(ALICE, READ, "orders")


def test_a_denial_comes_before_a_grant() -> None:
    world = Deciding()
    world.grants.add([grant("*", AclOperation.ALL), grant(permission=DENY)])
    assert world.may(ALICE, WRITE, "orders")
    assert not world.may(ALICE, READ, "orders")


def test_a_super_user_may_do_what_is_denied() -> None:
    world = Deciding(super_users=["User:alice"])
    world.grants.add([grant("*", AclOperation.ALL, DENY, who="User:*")])
    assert world.may(ALICE, READ, "orders")
    assert world.access.may_on_any(ALICE, HOST, WRITE, TOPIC)
    assert not world.may(BOB, READ, "orders")


def test_a_user_of_type_super_may_everything_until_it_is_disabled_or_removed() -> None:
    world = Deciding()
    world.users.put({"alice": User(type=UserType.SUPER)})
    assert world.may(ALICE, READ, "orders")
    assert not world.may(Principal("Group", "alice"), READ, "orders")
    world.users.put({"alice": User(type=UserType.SUPER, status=UserStatus.DISABLED)})
    assert not world.may(ALICE, READ, "orders")
    world.users.put({"alice": User(type=UserType.SUPER)})
    assert world.may(ALICE, READ, "orders")
    world.users.put({"alice": None})
    assert not world.may(ALICE, READ, "orders")


def test_a_change_takes_effect_on_decisions_that_were_cached() -> None:
    world = Deciding()
    assert not world.may(ALICE, READ, "orders")
    generation = world.access.generation
    world.grants.add([grant()])
    assert world.access.generation > generation
    assert world.may(ALICE, READ, "orders")
    world.grants.remove([grant()])
    assert not world.may(ALICE, READ, "orders")


def test_the_cache_is_bounded_in_decisions_and_in_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_module, "DECISIONS_MAX", 10)
    world = Deciding()
    for n in range(1_000):
        world.may(ALICE, READ, f"topic-{n}")
        world.may(ALICE, READ, "x" * CACHED_CHARS_MAX + str(n))
    assert world.access.cached_count <= 10


def test_a_repeated_decision_asks_no_grant() -> None:
    world = Deciding()
    world.grants.add([grant()])
    assert world.may(ALICE, READ, "orders")
    world.grants.index.was_cleared()  # behind the authorizer's back
    assert world.may(ALICE, READ, "orders")
