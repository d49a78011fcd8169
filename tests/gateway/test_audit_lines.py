"""Every path writes what was done, by whom and from where: one line for each thing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.differential.player import Wire
from tests.gateway.http.test_access import made
from tests.gateway.kafka import sasl_wire
from tests.gateway.remoting.client import Client

from rockgate.gateway.compose import app
from rockgate.gateway.compose.app import Server
from rockgate.gateway.kafka.authorization import changes
from rockgate.gateway.kafka.request import chunked
from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.users import User, UserType
from rockgate.protocol.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from rockgate.protocol.kafka.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rockgate.protocol.kafka.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode as C

pytestmark = pytest.mark.row("SEC-8")

T = TypeVar("T")
PASSWORD = "audited-and-secret"


@pytest.fixture(autouse=True)
def _untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "tune_collector", lambda: None)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = made(
        tmp_path,
        kafka__security_protocol="SASL_PLAINTEXT",
        security__delegation_tokens="true",
        security__failed_authentication_delay_ms="1",
        security__audit_lines_max="1000000",
        remoting__listen="127.0.0.1:0",
        namesrv__listen="127.0.0.1:0",
        remoting__authentication="signature",
        namesrv__authentication="signature",
    )
    async with AsyncExitStack() as resources:
        await server.start(resources)
        scram, sealed = scram_of(PASSWORD, 4_096), server.security.logins.sealed
        server.security.users.put(
            {
                "admin": User(type=UserType.SUPER, scram=scram, sealed=sealed("admin", PASSWORD)),
                "bob": User(scram=scram, sealed=sealed("bob", PASSWORD)),
            }
        )
        yield server


class Asking:
    """Runs clients in a thread, and returns the lines of the audit that they cause."""

    def __init__(self, server: Server, caplog: pytest.LogCaptureFixture) -> None:
        self.server = server
        self.caplog = caplog

    async def lines(self, ask: Callable[[], Any]) -> list[str]:
        before = len(self.caplog.records)
        await asyncio.to_thread(ask)
        records = self.caplog.records[before:]
        written = [each.getMessage() for each in records if each.name.endswith("security.audit")]
        return [re.sub(r" (host|listener|mechanism)=\S+", "", line) for line in written]

    async def kafka(self, user: str, request: Any, answer: type[Any], version: int) -> list[str]:
        """What a request of a user causes, besides the login."""
        address = self.server.addresses["kafka"]

        def ask() -> None:
            place = (address.host, address.port)
            wire = sasl_wire.opened(place, lambda each: sasl_wire.scram(each, user, PASSWORD))
            wire.ask(request, answer, version)
            wire.close()

        first, *rest = await self.lines(ask)
        assert first == f"authenticated principal=User:{user}"
        return rest

    async def remoting(
        self,
        user: str,
        code: C,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        listener: str = "remoting",
        secret: str = PASSWORD,
    ) -> list[str]:
        address = self.server.addresses[listener]

        def ask() -> None:
            client = Client((address.host, address.port))
            signed = signature.sign(fields or {}, body, access_key=user, secret=secret)
            client.ask(code, dict(signed), body)
            client.socket.close()

        return await self.lines(ask)


@pytest.fixture
def asking(server: Server, caplog: pytest.LogCaptureFixture) -> Asking:
    caplog.set_level("INFO")
    return Asking(server, caplog)


CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)],
    timeout_ms=10_000,
    validate_only=False,
)
BY_ADMIN = "changed principal=User:admin"


async def test_kafka_s_changes_are_written_with_what_they_change(asking: Asking) -> None:
    assert await asking.kafka("admin", CREATE, CreateTopicsResponse, 7) == [
        f"{BY_ADMIN} api=CREATE_TOPICS what=TOPIC:orders outcome=ok"
    ]
    assert await asking.kafka("admin", CREATE, CreateTopicsResponse, 7) == [
        f"{BY_ADMIN} api=CREATE_TOPICS what=TOPIC:orders outcome=TOPIC_ALREADY_EXISTS"
    ]
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)],
        timeout_ms=10_000,
        validate_only=False,
    )
    assert await asking.kafka("admin", grow, CreatePartitionsResponse, 3) == [
        f"{BY_ADMIN} api=CREATE_PARTITIONS what=TOPIC:orders outcome=ok"
    ]
    config = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    alter = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])],
        validate_only=False,
    )
    assert await asking.kafka("admin", alter, IncrementalAlterConfigsResponse, 1) == [
        f"{BY_ADMIN} api=INCREMENTAL_ALTER_CONFIGS what='TOPIC:orders retention.ms' outcome=ok"
    ]
    records = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="orders", partitions=[DeleteRecordsPartition(partition_index=7, offset=1)]
            )
        ],
        timeout_ms=10_000,
    )
    assert await asking.kafka("admin", records, DeleteRecordsResponse, 2) == [
        f"{BY_ADMIN} api=DELETE_RECORDS what=TOPIC:orders outcome=UNKNOWN_TOPIC_OR_PARTITION"
    ]
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=10_000)
    assert await asking.kafka("admin", delete, DeleteTopicsResponse, 6) == [
        f"{BY_ADMIN} api=DELETE_TOPICS what=TOPIC:orders outcome=ok"
    ]


async def test_changes_of_groups_quotas_and_tokens_are_written(asking: Asking) -> None:
    groups = DeleteGroupsRequest(groups_names=["readers"])
    assert await asking.kafka("admin", groups, DeleteGroupsResponse, 2) == [
        f"{BY_ADMIN} api=DELETE_GROUPS what=GROUP:readers outcome=GROUP_ID_NOT_FOUND"
    ]
    offsets = OffsetDeleteRequest(group_id="readers", topics=[])
    assert await asking.kafka("admin", offsets, OffsetDeleteResponse, 0) == [
        f"{BY_ADMIN} api=OFFSET_DELETE what=GROUP:readers outcome=GROUP_ID_NOT_FOUND"
    ]
    quotas = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="bob")],
                ops=[OpData(key="producer_byte_rate", value=1e6, remove=False)],
            )
        ],
        validate_only=False,
    )
    assert await asking.kafka("admin", quotas, AlterClientQuotasResponse, 1) == [
        f"{BY_ADMIN} api=ALTER_CLIENT_QUOTAS what='QUOTA:user=bob producer_byte_rate' outcome=ok"
    ]
    token = CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
    )
    (line,) = await asking.kafka("admin", token, CreateDelegationTokenResponse, 3)
    assert line.startswith(f"{BY_ADMIN} api=CREATE_DELEGATION_TOKEN what=")


async def test_a_request_that_only_validates_changes_nothing(asking: Asking) -> None:
    trying = CreateTopicsRequest(topics=CREATE.topics, timeout_ms=10_000, validate_only=True)
    assert await asking.kafka("admin", trying, CreateTopicsResponse, 7) == []


async def test_the_outcome_of_a_change_that_was_interrupted_is_known_too(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 0.0)
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("one", "two", "not/valid")
    ]
    several = CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=False)
    lines = await asking.kafka("admin", several, CreateTopicsResponse, 7)
    assert [line.split("what=")[1] for line in lines] == [
        "TOPIC:one outcome=ok",
        "TOPIC:two outcome=ok",
        "TOPIC:not/valid outcome=INVALID_TOPIC_EXCEPTION",
    ]


async def test_a_large_change_is_named_up_to_a_limit_and_counted(asking: Asking) -> None:
    names = [f"no-such-group-{number}" for number in range(50_000)]
    groups = DeleteGroupsRequest(groups_names=names)
    lines = await asking.kafka("admin", groups, DeleteGroupsResponse, 2)
    assert len(lines) == changes.LINES_MAX + 1
    more = f"{len(names) - changes.LINES_MAX:,} more resources"
    assert f"what='{more}'" in lines[-1]


async def test_a_refusal_is_one_line_and_no_change(asking: Asking) -> None:
    assert await asking.kafka("bob", CREATE, CreateTopicsResponse, 7) == [
        "refused principal=User:bob api=CREATE_TOPICS operation=CREATE resource=TOPIC:orders"
    ]
    refused = await asking.remoting("bob", C.UPDATE_BROKER_CONFIG)
    assert refused[1:] == [
        "refused principal=User:bob api=UPDATE_BROKER_CONFIG operation=ALTER"
        " resource=CLUSTER:kafka-cluster"
    ]


async def test_what_is_listed_without_a_client_s_rights_is_not_a_refusal(asking: Asking) -> None:
    everything = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    assert await asking.kafka("bob", everything, MetadataResponse, 9) == []


async def test_failed_logins_are_written_on_every_path(asking: Asking) -> None:
    address = asking.server.addresses["kafka"]

    def log_in() -> None:
        wire = Wire((address.host, address.port))
        sasl_wire.scram(wire, "bob", "wrong")
        wire.close()

    (line,) = await asking.lines(log_in)
    assert line.startswith("rejected principal=User:bob reason=")
    for listener, code in (("remoting", C.GET_BROKER_CONFIG), ("namesrv", C.GET_NAMESRV_CONFIG)):
        lines = await asking.remoting("bob", code, listener=listener, secret="wrong")
        assert lines == ["rejected principal=User:bob reason=signature"]


async def test_rocketmq_s_changes_are_written_with_what_they_change(asking: Asking) -> None:
    topic = {
        "topic": "orders",
        "defaultTopic": "TBW102",
        "readQueueNums": "1",
        "writeQueueNums": "1",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    first, line = await asking.remoting("admin", C.UPDATE_AND_CREATE_TOPIC, topic)
    assert first == "authenticated principal=User:admin"
    assert line == f"{BY_ADMIN} api=UPDATE_AND_CREATE_TOPIC what=TOPIC:orders outcome=ok"
    user = json.dumps({"password": PASSWORD}).encode()
    lines = await asking.remoting("admin", C.AUTH_CREATE_USER, {"username": "carol"}, user)
    assert len(lines) == 2 and "api=AUTH_CREATE_USER" in lines[1], "one line, and not two"
    lines = await asking.remoting("admin", C.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
    assert lines[1:] == [f"{BY_ADMIN} api=DELETE_TOPIC_IN_BROKER what=TOPIC:orders outcome=ok"]
    assert PASSWORD not in asking.caplog.text


async def test_changes_of_the_name_server_are_written(asking: Asking) -> None:
    value = {"namespace": "n", "key": "k", "value": "v"}
    lines = await asking.remoting("admin", C.PUT_KV_CONFIG, value, listener="namesrv")
    assert len(lines) == 2 and f"{BY_ADMIN} api=PUT_KV_CONFIG what=CLUSTER:" in lines[1]
