"""Alter- and DescribeUserScramCredentials."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.alter_user_scram_credentials import (
    AlterUserScramCredentials,
)
from rockgate.gateway.kafka.handlers.describe_user_scram_credentials import (
    DescribeUserScramCredentials,
)
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.users import StoredUsers, User, UserStatus, UserType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rockgate.protocol.kafka.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from rockgate.protocol.sasl.scram import ScramMechanism, is_password, salted_password
from rockgate.store.errors import StoreFull

SHA_256, SHA_512 = ScramMechanism
SALT = b"salt"
SALTED = {each: salted_password(each, b"secret", SALT, 4_096) for each in ScramMechanism}
OK = (0, None)


def upsertion(
    name: str = "alice", mechanism: ScramMechanism = SHA_256, **more: Any
) -> ScramCredentialUpsertion:
    given: dict[str, Any] = {
        "name": name,
        "mechanism": mechanism.number,
        "iterations": 4_096,
        "salt": SALT,
        "salted_password": SALTED[mechanism],
    }
    return ScramCredentialUpsertion(**{**given, **more})


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


class Administering(Admin):
    """Handlers of credentials over a store in memory."""

    @property
    def users(self) -> StoredUsers:
        return self.security.users

    async def alter(
        self, *given: ScramCredentialUpsertion | ScramCredentialDeletion
    ) -> dict[str, tuple[int, str | None]]:
        handler = AlterUserScramCredentials(
            users=self.users, durability=self.durability, audit=Audit()
        )
        request = AlterUserScramCredentialsRequest(
            deletions=[each for each in given if isinstance(each, ScramCredentialDeletion)],
            upsertions=[each for each in given if isinstance(each, ScramCredentialUpsertion)],
        )
        answer = await seen(handler.handle(request, call(0)), 0)
        return {each.user: (each.error_code, each.error_message) for each in answer.results}

    async def describe(self, *names: str) -> dict[str, Any]:
        request = DescribeUserScramCredentialsRequest(
            users=[UserName(name=name) for name in names] if names else None
        )
        handler = DescribeUserScramCredentials(self.users)
        answer = await seen(handler.handle(request, call(0)), 0)
        return {
            each.user: each.error_code
            or [(info.mechanism, info.iterations) for info in each.credential_infos]
            for each in answer.results
        }


async def test_what_is_set_is_described_and_checks_the_password() -> None:
    world = Administering()
    answer = await world.alter(upsertion(), upsertion(mechanism=SHA_512), upsertion("bob"))
    assert answer == {"alice": OK, "bob": OK}
    assert await world.describe() == {"alice": [(1, 4_096), (2, 4_096)], "bob": [(1, 4_096)]}
    assert await world.describe("bob", "carol", "alice", "alice") == {
        "bob": [(1, 4_096)],
        "carol": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": ErrorCode.DUPLICATE_RESOURCE,
    }
    for mechanism in ScramMechanism:
        credential = world.users.credential("alice", mechanism)
        assert credential is not None
        assert is_password(mechanism, credential, b"secret")
    world.reopen()
    assert await world.describe("bob") == {"bob": [(1, 4_096)]}


async def test_removing_the_last_credential_removes_the_user() -> None:
    world = Administering()
    await world.alter(upsertion(), upsertion(mechanism=SHA_512))
    assert await world.alter(deletion()) == {"alice": OK}
    assert await world.describe() == {"alice": [(2, 4_096)]}
    assert await world.alter(deletion(mechanism=2)) == {"alice": OK}
    assert "alice" not in world.users


async def test_other_properties_of_a_user_stay() -> None:
    world = Administering()
    user = User(type=UserType.SUPER, status=UserStatus.DISABLED, sealed=b"sealed")
    world.users.put({"alice": user})
    assert await world.describe() == {}
    await world.alter(upsertion())
    found = world.users.find("alice")
    assert found is not None and found._replace(scram={}) == user
    await world.alter(deletion())
    assert world.users.find("alice") == user


@pytest.mark.parametrize(
    ("asked", "code", "reason"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty."),
        (
            upsertion("ANONYMOUS"),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Username ANONYMOUS is reserved.",
        ),
        (upsertion(iterations=4_095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            AlterUserScramCredentialsRequest,
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "Unknown SCRAM mechanism",
        ),
        (
            upsertion(salt=b""),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "The salt must have 1 to 1,024 bytes.",
        ),
        (
            upsertion(salted_password=b"short"),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "The salted password has another size than hashes of the mechanism.",
        ),
        (
            deletion(),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
async def test_a_user_fails_alone(asked: Any, code: ErrorCode, reason: str) -> None:
    world = Administering()
    if asked is AlterUserScramCredentialsRequest:
        asked = deletion(mechanism=9)
    answer = await world.alter(asked, upsertion("bob"))
    assert answer == {asked.name: (code, reason), "bob": OK}
    assert list(world.users.names()) == ["bob"]


async def test_a_mechanism_of_a_user_is_altered_once() -> None:
    world = Administering()
    answer = await world.alter(upsertion(), deletion(), upsertion("bob"))
    reason = "A user credential cannot be altered twice in the same request"
    assert answer == {"alice": (ErrorCode.DUPLICATE_RESOURCE, reason), "bob": OK}


async def test_without_room_in_the_log_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Administering()
    await world.alter(upsertion())

    def full(*_: object, **__: object) -> None:
        raise StoreFull("no space left on device")

    with monkeypatch.context() as patch:
        for name in ("append", "append_batch", "append_group", "append_messages"):
            patch.setattr(world.store.log, name, full)
        answer = await world.alter(deletion(), upsertion("bob"))
        assert {code for code, _ in answer.values()} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert await world.describe() == {"alice": [(1, 4_096)]}
    assert await world.alter(deletion(), upsertion("bob")) == {"alice": OK, "bob": OK}


async def test_changes_are_audited_without_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = Administering()
    await world.alter(upsertion(), deletion("bob"))
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "rockgate.gateway.security.audit"
    ]
    api = "api=ALTER_USER_SCRAM_CREDENTIALS"
    assert lines == [
        f"changed principal=User:ANONYMOUS host=b {api} what=USER:bob outcome=RESOURCE_NOT_FOUND",
        f"changed principal=User:ANONYMOUS host=b {api} what=USER:alice outcome=ok",
    ]
