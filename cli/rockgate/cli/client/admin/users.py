"""Users and their SCRAM credentials on Kafka's wire. Passwords are hashed here and never sent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import decoded
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rockgate.protocol.kafka.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from rockgate.protocol.sasl.scram import SALT_SIZE, ScramMechanism, salted_password

_BY_NUMBER: Final = {mechanism.number: mechanism for mechanism in ScramMechanism}
_BY_NAME: Final = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


class ScramUser(NamedTuple):
    """A user, and the iterations of its credentials by the SASL name of their mechanism."""

    name: str
    iterations: Mapping[str, int]


async def describe(cluster: Cluster, names: Iterable[str] | None = None) -> list[ScramUser]:
    """These users, or all that have a SCRAM credential; those without are left out."""
    wanted = None if names is None else [UserName(name=name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=wanted)
    answer = await (await cluster.anyone()).ask(request, DescribeUserScramCredentialsResponse)
    if answer.error_code:
        raise Refused(answer.error_code, answer.error_message, what="users")
    found = []
    for each in decoded(answer.results):
        if each.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if each.error_code:
            raise Refused(each.error_code, each.error_message, what=f"user {each.user}")
        found.append(
            ScramUser(
                each.user,
                {
                    _name_of(info.mechanism): info.iterations
                    for info in sorted(each.credential_infos, key=lambda info: info.mechanism)
                },
            )
        )
    return sorted(found)


async def set_password(
    cluster: Cluster, name: str, password: str, mechanisms: Sequence[str], iterations: int
) -> None:
    """Set the credentials of these mechanisms; a user that does not exist is made."""
    upsertions = await asyncio.to_thread(
        lambda: [_upsertion(name, password, _BY_NAME[each], iterations) for each in mechanisms]
    )
    await _alter(cluster, name, AlterUserScramCredentialsRequest(upsertions=upsertions))


async def remove(cluster: Cluster, user: ScramUser) -> None:
    """Remove all SCRAM credentials of a user; a user without any other is gone with them."""
    deletions = [
        ScramCredentialDeletion(name=user.name, mechanism=_BY_NAME[each].number)
        for each in user.iterations
        if each in _BY_NAME
    ]
    await _alter(cluster, user.name, AlterUserScramCredentialsRequest(deletions=deletions))


async def _alter(cluster: Cluster, name: str, request: AlterUserScramCredentialsRequest) -> None:
    answer = await (await cluster.controller()).ask(request, AlterUserScramCredentialsResponse)
    for each in decoded(answer.results):
        if each.error_code:
            raise Refused(each.error_code, each.error_message, what=f"user {name}")


def _upsertion(
    name: str, password: str, mechanism: ScramMechanism, iterations: int
) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(SALT_SIZE)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism.number,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password.encode(), salt, iterations),
    )


def _name_of(number: int) -> str:
    mechanism = _BY_NUMBER.get(number)
    return mechanism.sasl_name if mechanism is not None else f"mechanism {number}"
