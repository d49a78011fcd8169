"""Certificates are principals: on Kafka's listeners and on RocketMQ's, and the audit has them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.differential.player import Wire
from tests.gateway.remoting.client import Client
from tests.gateway.security.tls.certificates import Authority
from tests.gateway.server import SEGMENT_BYTES

from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.config.sources import from_pairs
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.tls.contexts import TlsContexts
from rockgate.gateway.security.tls.identity import CertificateIdentity
from rockgate.gateway.security.tls.principals import NoPrincipal, PrincipalRules
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode

EVERYTHING = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def settings(authority: Authority, folder: Path, client_auth: str) -> dict[str, str]:
    file, key = authority.issue("server")
    return {
        "server.data_dir": str(folder / "data"),
        "store.segment_bytes": str(SEGMENT_BYTES),
        "http.listen": "off",
        "kafka.listen": "127.0.0.1:0",
        "kafka.security_protocol": "SSL",
        **{f"{each}.listen": "127.0.0.1:0" for each in ("remoting", "namesrv")},
        **{f"{each}.tls": "enforcing" for each in ("remoting", "namesrv")},
        "tls.certificate_file": str(file),
        "tls.key_file": str(key),
        "tls.client_ca_file": str(authority.file),
        "tls.client_auth": client_auth,
        "tls.principal_rules": "RULE:^CN=(.*?),.*$/$1/",
        "security.super_users": "User:alice",
    }


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(params=["required", "requested"])
async def server(
    authority: Authority, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Server]:
    given = settings(authority, tmp_path, request.param)
    config = gather(from_pairs([f"{name}={value}" for name, value in given.items()])).config
    async with AsyncExitStack() as resources:
        made = Server(config, given)
        await made.start(resources)
        yield made


def kafka(server: Server, context: ssl.SSLContext) -> int:
    """The error that a client gets who asks for all grants, which takes the cluster."""
    address = server.addresses["kafka"]
    wire = Wire((address.host, address.port))
    wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
    try:
        return wire.ask(EVERYTHING, DescribeAclsResponse, 3).error_code
    finally:
        wire.close()


def rocketmq(server: Server, context: ssl.SSLContext, listener: str, code: int) -> int:
    """The code that a client gets who asks for what takes the cluster."""
    address = server.addresses[listener]
    client = Client((address.host, address.port))
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    with client.socket:
        return int(client.ask(code).code)


async def test_a_certificate_is_a_principal_on_all_listeners(
    server: Server, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    assert server.security.authorizer is not None, "certificates authenticate"
    alice, bob = (authority.client(authority.issue(name)) for name in ("alice", "bob"))
    config, names = RequestCode.GET_BROKER_CONFIG, RequestCode.GET_NAMESRV_CONFIG
    with caplog.at_level(logging.INFO):
        assert await asyncio.to_thread(kafka, server, alice) == ErrorCode.NONE
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await asyncio.to_thread(kafka, server, bob) == denied
        for listener, code in (("remoting", config), ("namesrv", names)):
            for who, answer in ((alice, ResponseCode.SUCCESS), (bob, ResponseCode.NO_PERMISSION)):
                found = await asyncio.to_thread(rocketmq, server, who, listener, code)
                assert found == answer
    lines = [each.getMessage() for each in caplog.records if each.name.endswith(".audit")]
    for listener in ("kafka", "remoting", "namesrv"):
        line = (
            f"authenticated principal=User:alice host=127.0.0.1 mechanism=TLS listener={listener}"
        )
        assert line in lines


async def test_who_has_no_certificate_is_anonymous_or_refused(
    server: Server, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = authority.client()
    with caplog.at_level(logging.INFO):
        if server.config.tls.client_auth == "requested":
            denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert await asyncio.to_thread(kafka, server, nobody) == denied
            return
        with pytest.raises((OSError, AssertionError)):
            await asyncio.to_thread(kafka, server, nobody)
    assert "rejected principal=User:ANONYMOUS host=127.0.0.1 mechanism=TLS" in caplog.text
    assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in caplog.text


async def test_a_certificate_of_another_authority_is_in_the_audit(
    server: Server, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = authority.client(Authority(tmp_path, "stranger").issue("alice", "stranger-alice"))
    with caplog.at_level(logging.INFO), pytest.raises((OSError, AssertionError)):
        await asyncio.to_thread(kafka, server, stranger)
    assert "rejected principal=User:ANONYMOUS host=127.0.0.1 mechanism=TLS" in caplog.text


def test_sessions_are_not_resumed(tmp_path: Path) -> None:
    """With 1.3 there is no ticket; with 1.2 neither."""
    authority = Authority(tmp_path)
    given = settings(authority, tmp_path, "none")
    config = gather(from_pairs([f"{name}={value}" for name, value in given.items()])).config
    contexts = TlsContexts(config.tls)
    client = authority.client()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    session = _shaken(client, contexts.without_certificates)
    assert session is None or not session.has_ticket


def _shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLSession | None:
    """The session of a client after a handshake."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    left = [one, other]
    while left:
        for each in list(left):
            try:
                each.do_handshake()
                left.remove(each)
            except ssl.SSLWantReadError:
                continue
    return one.session


@pytest.mark.parametrize("name", ["ANONYMOUS", "*"])
def test_no_certificate_has_a_reserved_name(name: str) -> None:
    rules = PrincipalRules.parse("RULE:^CN=(.*)$/$1/")
    identity = CertificateIdentity(rules, Audit())
    certificate = {"subject": ((("commonName", name),),)}
    with pytest.raises(NoPrincipal):
        identity.principal(certificate, "10.0.0.1", "kafka")
    certificate = {"subject": ((("commonName", "x" * 300),),)}
    assert identity.principal(certificate, "10.0.0.1", "kafka") == Principal.user("x" * 300)
