"""CreateDelegationToken, Renew, Expire and Describe: who may do what, and what is answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.authorization.granted import GrantList, allow
from tests.gateway.security.delegation.tokens_world import (
    ALICE,
    BOB,
    CAROL,
    EXPIRY_MS,
    LIFETIME_MS,
    NOW_MS,
    TokensWorld,
)

from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.handlers.create_delegation_token import (
    RENEWERS_MAX,
    CreateDelegationToken,
)
from rockgate.gateway.kafka.handlers.describe_delegation_token import DescribeDelegationToken
from rockgate.gateway.kafka.handlers.expire_delegation_token import ExpireDelegationToken
from rockgate.gateway.kafka.handlers.renew_delegation_token import RenewDelegationToken
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.address import Address
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from rockgate.protocol.kafka.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from rockgate.protocol.kafka.messages.expire_delegation_token import ExpireDelegationTokenRequest
from rockgate.protocol.kafka.messages.renew_delegation_token import RenewDelegationTokenRequest

USER, TOKEN = AclResourceType.USER, AclResourceType.DELEGATION_TOKEN


class Tokens(TokensWorld):
    """The four handlers."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.access = GrantList()
        durability, audit = Admin().durability, Audit()
        permitted = Permissions(self.access, audit)
        self.creating = CreateDelegationToken(
            tokens=self.tokens, permitted=permitted, durability=durability, audit=audit
        )
        self.renewing = RenewDelegationToken(tokens=self.tokens, durability=durability, audit=audit)
        self.expiring = ExpireDelegationToken(
            tokens=self.tokens, durability=durability, audit=audit
        )
        self.describing = DescribeDelegationToken(tokens=self.tokens, permitted=permitted)

    async def make(
        self, who: Principal = ALICE, version: int = 3, *, token_id: str | None = None, **given: Any
    ) -> Any:
        fields = {"renewers": [], "max_lifetime_ms": -1, **given}
        fields.setdefault("owner_principal_type", None)
        fields.setdefault("owner_principal_name", None)
        request = CreateDelegationTokenRequest(**fields)
        return await seen(self.creating.handle(request, asked_by(who, version, token_id)), version)

    async def renew(self, hmac: bytes, who: Principal = ALICE, period_ms: int = -1) -> Any:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await seen(self.renewing.handle(request, asked_by(who, 2)), 2)

    async def expire(self, hmac: bytes, who: Principal = ALICE, period_ms: int = -1) -> Any:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await seen(self.expiring.handle(request, asked_by(who, 2)), 2)

    async def describe(
        self, who: Principal = ALICE, owners: list[Principal] | None = None, version: int = 3
    ) -> Any:
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name)
                for each in owners
            ]
        )
        return await seen(self.describing.handle(request, asked_by(who, version)), version)

    async def listed(self, who: Principal, owners: list[Principal] | None = None) -> set[str]:
        """The ids that a principal sees."""
        return {each.token_id for each in (await self.describe(who, owners)).tokens}


class _Login:
    def __init__(self, token_id: str | None) -> None:
        self.token_id = token_id


class _Authentication:
    """What a connection remembers of its login."""

    def __init__(self, token_id: str | None) -> None:
        self.login = _Login(token_id)


def asked_by(who: Principal, version: int, token_id: str | None = None) -> Call:
    """A request of a client, which may have logged in with a token."""
    local, remote = Address("127.0.0.1", 9092), Address("10.0.0.1", 50_000)
    peer = Peer(connection_id=1, local=local, remote=remote)
    peer.become(who)
    peer.authentication = _Authentication(token_id)  # type: ignore[assignment]
    return Call(version, "me", peer)


def renewer(who: Principal) -> CreatableRenewers:
    return CreatableRenewers(principal_type=who.type, principal_name=who.name)


@pytest.fixture
def world() -> Iterator[Tokens]:
    made = Tokens()
    yield made
    made.threads.close()


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_client_creates_a_token_for_itself_without_a_grant(
    world: Tokens, version: int
) -> None:
    made = await world.make(version=version, renewers=[renewer(BOB)])
    assert made.error_code == ErrorCode.NONE
    assert (made.principal_type, made.principal_name) == ("User", "alice")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (
        NOW_MS,
        NOW_MS + EXPIRY_MS,
        NOW_MS + LIFETIME_MS,
    )
    assert len(made.hmac) == 64
    (listed,) = (await world.describe(version=version)).tokens
    assert (listed.token_id, listed.hmac) == (made.token_id, made.hmac)
    assert [each.principal_name for each in listed.renewers] == ["bob"]
    if version == 3:
        assert made.token_requester_principal_name == "alice"
        assert listed.token_requester_principal_name == "alice"


async def test_another_owner_takes_create_tokens_on_it(world: Tokens) -> None:
    given: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    refused = await world.make(**given)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.token_id, refused.hmac, refused.issue_timestamp_ms) == ("", b"", -1)
    world.access.add(allow(ALICE, AclOperation.CREATE_TOKENS, USER, "User:bob"))
    made = await world.make(**given)
    assert (made.error_code, made.principal_name) == (ErrorCode.NONE, "bob")
    assert made.token_requester_principal_name == "alice"
    assert await world.listed(ALICE) == {made.token_id}, "who asked for it sees it"
    assert (await world.renew(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize(("who", "token_id"), [(ANONYMOUS, None), (ALICE, "id")])
async def test_who_is_not_authenticated_or_only_by_a_token_may_do_nothing(
    world: Tokens, who: Principal, token_id: str | None
) -> None:
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (await world.make(who, token_id=token_id)).error_code == not_allowed
    call = asked_by(who, 2, token_id)
    renew = RenewDelegationTokenRequest(hmac=b"", renew_period_ms=1)
    expire = ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=1)
    describe = DescribeDelegationTokenRequest(owners=None)
    for response in (
        world.renewing.handle(renew, call),
        world.expiring.handle(expire, call),
        world.describing.handle(describe, call),
    ):
        assert (await seen(response, 2)).error_code == not_allowed


async def test_a_server_without_tokens_says_so() -> None:
    world = Tokens(is_enabled=False)
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (await world.make()).error_code == disabled
    assert (await world.renew(b"x")).error_code == disabled
    assert (await world.expire(b"x")).error_code == disabled
    assert (await world.describe()).error_code == disabled
    world.threads.close()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"renewers": [renewer(Principal("Group", "a"))]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"renewers": [renewer(BOB)] * (RENEWERS_MAX + 1)}, ErrorCode.POLICY_VIOLATION),
        ({"renewers": [renewer(Principal.user("x" * 256))]}, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_renewers_are_users_and_not_too_many(
    world: Tokens, given: dict[str, Any], code: ErrorCode
) -> None:
    assert (await world.make(**given)).error_code == code
    assert len(world.stored) == 0


async def test_a_token_is_renewed_and_ended_by_its_hmac(world: Tokens) -> None:
    made = await world.make(renewers=[renewer(BOB)])
    world.pass_time(10)
    assert (await world.renew(made.hmac, BOB, 100)).expiry_timestamp_ms == NOW_MS + 110
    mismatch = await world.renew(made.hmac, CAROL)
    assert (mismatch.error_code, mismatch.expiry_timestamp_ms) == (
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
        -1,
    )
    assert (await world.expire(made.hmac, BOB, 5)).expiry_timestamp_ms == NOW_MS + 15
    world.pass_time(6)
    assert (await world.renew(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert await world.listed(ALICE) == {made.token_id}, "until it is removed"
    assert (await world.expire(made.hmac)).expiry_timestamp_ms == NOW_MS + 16
    assert (await world.expire(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert await world.listed(ALICE) == set()


async def test_what_is_listed_depends_on_owner_renewers_and_grants(world: Tokens) -> None:
    of_alice = (await world.make(ALICE, renewers=[renewer(BOB)])).token_id
    of_carol = (await world.make(CAROL)).token_id
    assert await world.listed(ALICE) == {of_alice}
    assert await world.listed(BOB) == {of_alice}
    assert await world.listed(ALICE, []) == set()
    assert await world.listed(ALICE, [BOB]) == set()
    assert await world.listed(BOB, [ALICE, ALICE]) == {of_alice}
    assert await world.listed(BOB, [CAROL]) == set()
    world.access.add(allow(BOB, AclOperation.DESCRIBE, TOKEN, of_carol))
    assert await world.listed(BOB) == {of_alice, of_carol}
    world.access.add(allow(ALICE, AclOperation.DESCRIBE_TOKENS, USER, str(CAROL)))
    assert await world.listed(ALICE, [CAROL]) == {of_carol}


async def test_thousands_of_tokens_are_listed_in_slices(world: Tokens) -> None:
    for _ in range(3_000):
        world.create()
    tokens = (await world.describe()).tokens
    assert len({each.token_id for each in tokens}) == 3_000
