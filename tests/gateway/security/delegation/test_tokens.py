"""The table of docs/internals/security.md, row by row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gateway.security.delegation.tokens_world import (
    ALICE,
    BOB,
    CAROL,
    CHECK_MS,
    EXPIRY_MS,
    LIFETIME_MS,
    NOW_MS,
    TokensWorld,
)

from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.credentials.secret_key import SecretKey
from rockgate.gateway.security.delegation import expiry as expiry_module
from rockgate.gateway.security.delegation import stored_tokens as stored_module
from rockgate.gateway.security.delegation.token import IssuedToken
from rockgate.gateway.security.errors import (
    NotTokenOwner,
    TokenExpired,
    TokenNotFound,
    TooManyRecords,
)
from rockgate.gateway.security.users import User
from rockgate.protocol.sasl.scram import ScramMechanism
from rockgate.store.errors import StoreFull

SHA_256 = ScramMechanism.SHA_256


@pytest.fixture
def world() -> Iterator[TokensWorld]:
    made = TokensWorld()
    yield made
    made.threads.close()


async def is_accepted(world: TokensWorld, issued: IssuedToken) -> bool:
    return await world.tokens.token_credential(issued.id, SHA_256) is not None


# Created


def test_a_new_token_is_valid_for_a_renewal_period_and_ends_with_its_lifetime(
    world: TokensWorld,
) -> None:
    longest, short = world.create().token, world.create(lifetime_ms=300).token
    assert (longest.issued_ms, longest.expires_ms, longest.ends_ms) == (
        NOW_MS,
        NOW_MS + EXPIRY_MS,
        NOW_MS + LIFETIME_MS,
    )
    assert (short.expires_ms, short.ends_ms) == (NOW_MS + 300, NOW_MS + 300)
    assert world.create(lifetime_ms=2**63 - 1).token.ends_ms == NOW_MS + LIFETIME_MS


def test_an_id_is_no_option_of_a_command_line(world: TokensWorld) -> None:
    ids = {world.create().id for _ in range(300)}
    assert len(ids) == 300
    assert not any(each.startswith("-") for each in ids)


def test_neither_the_log_nor_a_representation_has_the_hmac(world: TokensWorld) -> None:
    issued = world.create()
    assert not any(issued.hmac in bytes(change.body) for change in world.journal.changes)
    assert not any(issued.hmac in slice_ for slice_ in world.stored.fold.snapshot())
    assert repr(issued.hmac)[2:-1] not in repr(issued)


@pytest.mark.parametrize("limit", ["TOKENS_MAX", "OF_OWNER_MAX"])
def test_there_is_a_limit_of_tokens(
    world: TokensWorld, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(stored_module, limit, 2)
    issued = world.create(), world.create()
    with pytest.raises(TooManyRecords):
        world.create()
    world.tokens.renew(issued[0].hmac, ALICE, 1)
    if limit == "OF_OWNER_MAX":
        world.create(BOB)


def test_tokens_survive_a_snapshot_and_a_replay(world: TokensWorld) -> None:
    kept, gone = world.create(ALICE, BOB), world.create()
    world.tokens.expire(gone.hmac, ALICE, -1)
    again = TokensWorld()
    again.stored.fold.restore(world.stored.fold.snapshot())
    for change in world.journal.changes:
        again.stored.fold.apply(change)
    assert list(again.stored.ids()) == [kept.id]
    assert again.stored.find(kept.id) == kept.token
    assert again.tokens.renew(kept.hmac, BOB, 5).token.expires_ms == NOW_MS + 5
    assert list(again.stored.ids_of("User:alice")) == [kept.id]


# Renewed


def test_owner_and_renewers_renew_within_the_period_and_the_end(world: TokensWorld) -> None:
    issued = world.create(ALICE, BOB)
    world.pass_time(500)
    assert world.tokens.renew(issued.hmac, ALICE, 100).token.expires_ms == NOW_MS + 600
    assert world.tokens.renew(issued.hmac, BOB, -1).token.expires_ms == NOW_MS + 500 + EXPIRY_MS
    while (
        token := world.tokens.renew(issued.hmac, BOB, 2**63 - 1).token
    ).expires_ms < token.ends_ms:
        world.pass_time(EXPIRY_MS // 2)
    assert token.ends_ms == NOW_MS + LIFETIME_MS
    with pytest.raises(NotTokenOwner):
        world.tokens.renew(issued.hmac, CAROL, 1)


def test_whoever_asked_for_a_token_sees_it_and_cannot_renew_it(world: TokensWorld) -> None:
    issued = world.tokens.create(requester=CAROL, owner=ALICE, renewers=[], lifetime_ms=-1)
    assert issued.token.may_be_seen_by(CAROL)
    with pytest.raises(NotTokenOwner):
        world.tokens.renew(issued.hmac, CAROL, 1)


def test_a_token_that_has_expired_is_not_renewed(world: TokensWorld) -> None:
    issued = world.create()
    world.pass_time(EXPIRY_MS)
    world.tokens.renew(issued.hmac, ALICE, 1)
    world.pass_time(2)
    with pytest.raises(TokenExpired):
        world.tokens.renew(issued.hmac, ALICE, 1)
    with pytest.raises(TokenExpired):
        world.tokens.renew(issued.hmac, CAROL, 1)
    with pytest.raises(TokenExpired):
        world.tokens.expire(issued.hmac, ALICE, 0)


@pytest.mark.parametrize("password", [b"", b"x" * 64])
def test_an_unknown_hmac_is_nobody_s(world: TokensWorld, password: bytes) -> None:
    world.create()
    with pytest.raises(TokenNotFound):
        world.tokens.renew(password, ALICE, 1)
    with pytest.raises(TokenNotFound):
        world.tokens.expire(password, ALICE, -1)


# Expired and removed


async def test_a_token_expires_at_a_time_or_at_once(world: TokensWorld) -> None:
    issued = world.create(ALICE, BOB)
    assert world.tokens.expire(issued.hmac, BOB, 100) == (issued.id, NOW_MS + 100)
    assert await is_accepted(world, issued)
    world.pass_time(101)
    assert not await is_accepted(world, issued)
    assert world.tokens.expire(issued.hmac, ALICE, -1) == (issued.id, NOW_MS + 101)
    assert world.removed == [issued.id]
    with pytest.raises(TokenNotFound):
        world.tokens.expire(issued.hmac, ALICE, -1)


def test_another_principal_cannot_end_a_token(world: TokensWorld) -> None:
    issued = world.create()
    with pytest.raises(NotTokenOwner):
        world.tokens.expire(issued.hmac, BOB, -1)


def test_expired_tokens_are_removed_by_a_later_check(
    world: TokensWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_module, "SLICE_COUNT", 2)
    world.tidy()
    short = [world.create(lifetime_ms=100).id for _ in range(5)]
    long = world.create().id
    world.pass_time(101)
    world.tidy()
    assert world.removed == [], "the time of the check has not come"
    world.pass_time(CHECK_MS)
    world.tidy()
    assert sorted(world.removed) == sorted(short)
    assert list(world.stored.ids()) == [long]


def test_a_removal_that_fails_is_tried_again(world: TokensWorld) -> None:
    issued = world.create(lifetime_ms=1)
    world.pass_time(2)
    assert world.expiry.step()

    world.journal.failure = StoreFull("no space left on device")
    for _ in range(2):
        with pytest.raises(StoreFull):
            world.expiry.step()
    world.journal.failure = None
    world.tidy()
    assert world.removed == [issued.id]


# Owners


async def test_the_tokens_of_a_user_who_is_removed_are_removed(world: TokensWorld) -> None:
    world.tidy()
    of_alice, of_bob, of_carol = world.create(), world.create(BOB), world.create(CAROL)
    world.users.put({"alice": None})
    assert not await is_accepted(world, of_alice)
    world.users.put({"alice": User(scram=scram_of("again", 4_096))})
    world.tidy()
    assert world.removed == [of_alice.id], "also if the name is given to somebody else at once"
    assert await is_accepted(world, of_bob)
    assert await is_accepted(world, of_carol), "whose owner came with a certificate"


def test_the_tokens_of_a_user_who_was_removed_before_the_start_are_removed() -> None:
    world = TokensWorld()
    issued = world.create()
    again = TokensWorld()
    again.users.put({"alice": None})
    again.journal.end = world.journal.end
    again.stored.fold.restore(world.stored.fold.snapshot())
    again.tidy()
    assert again.removed == [issued.id]


async def test_the_tokens_of_a_disabled_user_are_of_no_use_meanwhile(world: TokensWorld) -> None:
    issued, alice = world.create(), world.users.find("alice")
    world.disable("alice")
    assert not await is_accepted(world, issued)
    world.users.put({"alice": alice})
    world.tidy()
    assert await is_accepted(world, issued)


# The key


async def test_with_another_key_tokens_are_nobody_s(world: TokensWorld) -> None:
    issued = world.create()
    before = await world.tokens.token_credential(issued.id, SHA_256)
    other = world.made(SecretKey(b"o" * 32))
    after = await other.token_credential(issued.id, SHA_256)
    assert before is not None and after is not None
    assert before.credential != after.credential
    with pytest.raises(TokenNotFound):
        other.renew(issued.hmac, ALICE, 1)


async def test_a_server_without_tokens_accepts_none(world: TokensWorld) -> None:
    issued = world.create()
    disabled = world.made(SecretKey(b"k" * 32), is_enabled=False)
    assert await disabled.token_credential(issued.id, SHA_256) is None
