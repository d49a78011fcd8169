from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.store.journals import MemoryJournal

from rockgate.gateway.security.credentials.logins import Logins, PasswordThreads, scram_of
from rockgate.gateway.security.credentials.secret_key import SecretKey
from rockgate.gateway.security.errors import SecretUnavailable
from rockgate.gateway.security.users import StoredUsers, User, UserStatus
from rockgate.protocol.sasl.scram import ScramMechanism, is_password

KEYS = scram_of("right", 4_096)


class Logging:
    def __init__(self, threads: PasswordThreads) -> None:
        journal = MemoryJournal()
        self.users = StoredUsers(journal)
        journal.attach(self.users.fold)
        self.users.put({"alice": User(scram=KEYS)})
        self.logins = Logins(users=self.users, threads=threads, key=SecretKey(bytes(32)))


@pytest.fixture
def world() -> Iterator[Logging]:
    threads = PasswordThreads(2)
    yield Logging(threads)
    threads.close()


async def test_only_the_right_password_of_an_enabled_user_is_accepted(world: Logging) -> None:
    check = world.logins.check_password
    assert await check("alice", "right")
    assert not await check("alice", "wrong")
    assert not await check("bob", "right")
    world.users.put({"alice": User(scram=KEYS, status=UserStatus.DISABLED)})
    assert not await check("alice", "right")


async def test_a_user_with_one_mechanism_only_can_use_its_password(world: Logging) -> None:
    world.users.put({"alice": User(scram={"SCRAM-SHA-512": KEYS["SCRAM-SHA-512"]})})
    assert await world.logins.check_password("alice", "right")


async def test_a_password_that_was_changed_meanwhile_is_not_accepted(world: Logging) -> None:
    checking = asyncio.ensure_future(world.logins.check_password("alice", "right"))
    await asyncio.sleep(0)
    world.users.put({"alice": None})
    assert not await checking


async def test_many_checks_at_once_are_all_answered(world: Logging) -> None:
    found = await asyncio.gather(
        *(world.logins.check_password("alice", ("right", "wrong")[n % 2]) for n in range(20))
    )
    assert found == [True, False] * 10


def test_a_user_who_does_not_exist_has_a_salt_that_stays(world: Logging) -> None:
    mechanism = ScramMechanism.SHA_256
    one = world.logins.credential("bob", mechanism)
    assert one == world.logins.credential("bob", mechanism)
    assert one.salt != world.logins.credential("carol", mechanism).salt
    assert len(one.salt) == len(KEYS["SCRAM-SHA-256"].salt)
    assert one.iterations == KEYS["SCRAM-SHA-256"].iterations


async def test_one_password_makes_the_keys_of_both_mechanisms(world: Logging) -> None:
    made = await world.logins.hashed("new")
    for mechanism in ScramMechanism:
        assert is_password(mechanism, made[mechanism.sasl_name], b"new")
        assert not is_password(mechanism, made[mechanism.sasl_name], b"old")


def test_a_secret_is_read_by_the_key_that_sealed_it_for_that_user_only(world: Logging) -> None:
    logins = world.logins
    sealed = logins.sealed("alice", "signing-secret")
    assert b"signing-secret" not in sealed
    world.users.put({"alice": User(sealed=sealed), "bob": User(sealed=sealed)})
    assert logins.secret("alice") == "signing-secret"
    assert logins.secret("bob") is None
    assert logins.secret("carol") is None
    assert SecretKey(bytes(31) + b"x").open("alice", sealed) is None
    assert SecretKey(bytes(32)).open("alice", sealed[:-1]) is None
    assert SecretKey(bytes(32)).open("alice", b"") is None
    world.users.put({"alice": User(sealed=sealed, status=UserStatus.DISABLED)})
    assert logins.secret("alice") is None


@pytest.mark.parametrize("secret", ["", "x" * 1_025])
def test_a_secret_has_a_size(world: Logging, secret: str) -> None:
    with pytest.raises(SecretUnavailable, match="must have 1 to 1,024 bytes"):
        world.logins.sealed("alice", secret)
