"""librdkafka's AdminClient manages ACLs and SCRAM credentials of a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.gateway.server import RunningServer

SECONDS_MAX = 30
ALL = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def administrator(server: RunningServer) -> Any:
    host, port = server.address("kafka")
    return AdminClient({"bootstrap.servers": f"{host}:{port}"})


def binding(name: str) -> Any:
    return AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    settings = ["security.authorization=on", "super.users=User:ANONYMOUS"]
    with RunningServer(tmp_path, settings=settings) as running:
        yield running


def test_acls_are_created_described_and_deleted_and_survive_a_restart(
    server: RunningServer,
) -> None:
    admin = administrator(server)
    wanted = {binding("a"), binding("b")}
    for future in admin.create_acls([*wanted]).values():
        assert future.result(SECONDS_MAX) is None
    assert {*admin.describe_acls(ALL).result(SECONDS_MAX)} == wanted
    server.stop_cleanly()
    server.restart()
    admin = administrator(server)
    assert {*admin.describe_acls(ALL).result(SECONDS_MAX)} == wanted
    [future] = admin.delete_acls([ALL]).values()
    assert {*future.result(SECONDS_MAX)} == wanted
    assert admin.describe_acls(ALL).result(SECONDS_MAX) == []
    assert "api=CREATE_ACLS" in server.log


def test_credentials_are_set_described_and_deleted(server: RunningServer) -> None:
    admin = administrator(server)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8_192)
    change = UserScramCredentialUpsertion("alice", info, b"planted-password")
    assert admin.alter_user_scram_credentials([change])["alice"].result(SECONDS_MAX) is None
    found = admin.describe_user_scram_credentials().result(SECONDS_MAX)
    [credential] = found["alice"].scram_credential_infos
    assert credential.mechanism == ScramMechanism.SCRAM_SHA_512
    assert credential.iterations == 8_192
    gone = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)
    assert admin.alter_user_scram_credentials([gone])["alice"].result(SECONDS_MAX) is None
    with pytest.raises(KafkaException) as refused:
        admin.alter_user_scram_credentials([gone])["alice"].result(SECONDS_MAX)
    assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_without_authorization_acls_are_disabled(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        admin = administrator(server)
        [future] = admin.create_acls([binding("a")]).values()
        with pytest.raises(KafkaException) as refused:
            future.result(SECONDS_MAX)
    assert refused.value.args[0].code() == KafkaError.SECURITY_DISABLED
