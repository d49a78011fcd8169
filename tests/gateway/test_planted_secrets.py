"""Secrets of every kind are given to a server, which shows none of them anywhere.

One server takes them all, rightly, wrongly and in requests that it cannot read. Then everything
that comes out of it is searched: its log at the level debug, the audit in it, every page and
answer, the settings, the dump of its log, and the files that it has written.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from tests.cli.terminal import Terminal
from tests.differential.player import Wire
from tests.gateway.kafka import sasl_wire
from tests.gateway.remoting.client import Client
from tests.gateway.security.oauth.issuer import AUDIENCE, jwk, key_set, token
from tests.gateway.security.tls.certificates import Authority
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from rockgate.protocol.kafka.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from rockgate.protocol.kafka.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode as C
from rockgate.protocol.sasl.scram import ScramMechanism, salted_password

pytestmark = pytest.mark.row("SEC-7")

ADMIN, CAROL = "planted-password-of-admin", "planted-password-of-carol"
WRONG, KEY_PASSWORD = "planted-but-wrong-password", "planted-password-of-the-key"
PAGES = "planted-token-of-the-pages"
FAULTY = "planted-in-a-faulty-request"
SALTED = salted_password(ScramMechanism.SHA_512, b"planted-salted", b"salt" * 4, 4_096)
BROKER = 4


class Planted:
    """The server, what was entrusted to it, and what it has answered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secrets: dict[str, bytes] = {
            name: text.encode()
            for name, text in {
                "password of admin": ADMIN,
                "password of carol": CAROL,
                "wrong password": WRONG,
                "password of the key": KEY_PASSWORD,
                "token of the pages": PAGES,
                "in a faulty request": FAULTY,
            }.items()
        } | {"salted password": SALTED}
        self.answers: list[bytes] = []

    def settings(self) -> list[str]:
        """A server that demands every kind of login."""
        (self.folder / "keys.json").write_bytes(key_set(jwk("ES256")))
        (self.folder / "pages.token").write_text(PAGES + "\n")
        certificate, key = Authority(self.folder).issue("server")
        private = serialization.load_pem_private_key(key.read_bytes(), None)
        key.write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(KEY_PASSWORD.encode()),
            )
        )
        (self.folder / "key.password").write_text(KEY_PASSWORD + "\n")
        return [
            "kafka.listeners=SASL_PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0",
            "kafka.listener_security=SASL_PLAINTEXT:SASL_PLAINTEXT,TLS:SSL",
            f"tls.certificate_file={certificate}",
            f"tls.key_file={key}",
            f"tls.key_password_file={self.folder / 'key.password'}",
            "security.sasl_mechanisms=PLAIN,SCRAM-SHA-512,SCRAM-SHA-256,OAUTHBEARER",
            "security.allow_plain_without_tls=true",
            "security.delegation_tokens=true",
            "security.failed_authentication_delay_ms=1",
            f"oauth.jwks={self.folder / 'keys.json'}",
            f"oauth.audience={AUDIENCE}",
            f"http.token_file={self.folder / 'pages.token'}",
            "remoting.authentication=signature",
            "namesrv.authentication=signature",
        ]

    def tell(self, server: RunningServer) -> None:
        """Every kind of secret, rightly and wrongly."""
        address = server.address("kafka.SASL_PLAINTEXT")
        wire = sasl_wire.opened(address, lambda each: sasl_wire.plain(each, "admin", ADMIN))
        self._tell_wrongly(address)
        self._tell_credentials(wire)
        self._tell_tokens(address, wire)
        self._tell_remoting(server.address("remoting"))
        self._tell_remoting(server.address("namesrv"))
        self._describe_configs(wire)
        self._read_pages(server)
        wire.close()

    def _tell_wrongly(self, address: tuple[str, int]) -> None:
        for log_in in (sasl_wire.plain, sasl_wire.scram):
            for name in ("admin", "nobody", WRONG):
                wire = Wire(address)
                self.keep(log_in(wire, name if name != WRONG else "x", WRONG))
                wire.close()
        for message in (
            b"\0admin\0" + FAULTY.encode() + b"\0",
            FAULTY.encode(),
            b"\xff\0admin\0" + FAULTY.encode(),
            b"n,,n=admin,r=" + FAULTY.encode() + b",x=",
            b"n,,\x01auth=Bearer " + FAULTY.encode() + b"\x01",
        ):
            for mechanism in ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"):
                if mechanism.startswith("SCRAM") and message.startswith(b"n,,n="):
                    continue  # a nonce is no secret, and is sent back
                wire = Wire(address)
                assert sasl_wire.shake(wire, mechanism) == 0
                self.keep(sasl_wire.step(wire, message))
                wire.close()
        for raw in (
            struct.pack(">ihhi", 200, 36, 2, 1) + FAULTY.encode() * 8,
            struct.pack(">ihhi", 2_000_000_000, 17, 1, 1) + FAULTY.encode(),
        ):
            wire = Wire(address)
            wire.socket.sendall(raw)
            wire.close()

    def _tell_credentials(self, wire: Wire) -> None:
        for iterations in (4_096, 1):
            request = AlterUserScramCredentialsRequest(
                deletions=[],
                upsertions=[
                    ScramCredentialUpsertion(
                        name="dora",
                        mechanism=2,
                        iterations=iterations,
                        salt=b"salt" * 4,
                        salted_password=SALTED,
                    )
                ],
            )
            self.keep(wire.ask(request, AlterUserScramCredentialsResponse, 0))

    def _tell_tokens(self, address: tuple[str, int], wire: Wire) -> None:
        create = CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
        )
        made = wire.ask(create, CreateDelegationTokenResponse, 3)
        assert made.error_code == 0
        self.secrets["HMAC"] = bytes(made.hmac)
        with_token = sasl_wire.opened(
            address,
            lambda each: sasl_wire.scram(
                each, made.token_id, b64encode(made.hmac).decode(), is_token=True
            ),
        )
        with_token.close()
        for hmac in (bytes(made.hmac), FAULTY.encode()):
            expire = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=60_000)
            self.keep(wire.ask(expire, ExpireDelegationTokenResponse, 2))
        now = time.time()
        for name, seconds in (("bearer token", 600), ("expired bearer token", -600)):
            text = token(sub="admin", iat=now - 1_000, exp=now + seconds)
            self.secrets[name] = text.rpartition(".")[2].encode()
            bearer = Wire(address)
            self.keep(sasl_wire.bearer(bearer, text))
            bearer.close()

    def _tell_remoting(self, address: tuple[str, int]) -> None:
        client = Client(address)
        for secret, fields, body in (
            (ADMIN, {"username": "carol"}, json.dumps({"password": CAROL})),
            (WRONG, {"username": "carol"}, json.dumps({"password": FAULTY})),
            (ADMIN, {"username": "erin"}, '{"password": "' + FAULTY),
            (ADMIN, {"username": "erin"}, json.dumps({"password": FAULTY, "userType": "none"})),
            (ADMIN, {"username": "erin"}, json.dumps({"password": [FAULTY]})),
        ):
            for code in (C.AUTH_CREATE_USER, C.AUTH_UPDATE_USER):
                self.ask(client, code, fields, body.encode(), secret)
        for extra in ({}, {"defaultTopicPerm": "none"}, {"secretKey": "x" * 2_000 + FAULTY}):
            fields = {"accessKey": "frank", "secretKey": FAULTY, "admin": "false", **extra}
            self.ask(client, C.UPDATE_AND_CREATE_ACL_CONFIG, fields, b"", ADMIN)
        for code in (
            C.GET_BROKER_CONFIG,
            C.GET_NAMESRV_CONFIG,
            C.AUTH_LIST_USER,
            C.GET_BROKER_CLUSTER_ACL_CONFIG,
            C.GET_BROKER_CLUSTER_ACL_INFO,
        ):
            self.ask(client, code, {}, b"", ADMIN)
        self.ask(client, C.AUTH_GET_USER, {"username": "carol"}, b"", ADMIN)
        config = f"secretKey={FAULTY}\npassword={FAULTY}"
        self.ask(client, C.UPDATE_BROKER_CONFIG, {}, config.encode(), ADMIN)
        self.ask(client, C.PUT_KV_CONFIG, {"namespace": "n"}, b"", ADMIN)
        client.socket.close()

    def ask(self, client: Client, code: int, fields: Any, body: bytes, secret: str) -> None:
        """A signed request; its answer is recorded."""
        signed = signature.sign(fields, body, access_key="admin", secret=secret)
        self.secrets[f"signature {len(self.secrets)}"] = signed["Signature"].encode()
        answer = client.ask(code, dict(signed), body)
        self.answers.append(f"{answer.remark} {answer.fields}".encode() + bytes(answer.body))

    def _describe_configs(self, wire: Wire) -> None:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name="1", configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        self.keep(wire.ask(request, DescribeConfigsResponse, 4))

    def _read_pages(self, server: RunningServer) -> None:
        host, port = server.address("http")
        for login in (
            "Basic " + b64encode(f"admin:{ADMIN}".encode()).decode(),
            "Basic " + b64encode(f"admin:{WRONG}".encode()).decode(),
            f"Bearer {PAGES}",
            f"Bearer {FAULTY}",
            f"Digest {FAULTY}",
        ):
            for page in ("/metrics", "/none", f"/metrics?token={FAULTY}"):
                request = urllib.request.Request(
                    f"http://{host}:{port}{page}", headers={"Authorization": login}
                )
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        self.answers.append(str(answer.headers).encode() + answer.read())
                except urllib.error.HTTPError as error:
                    self.answers.append(str(error.headers).encode() + error.read())

    def keep(self, answer: object) -> None:
        """What the server has answered."""
        self.answers.append(repr(answer).encode())


def spellings(secret: bytes) -> Iterator[bytes]:
    """How a secret may be written."""
    yield secret
    yield repr(secret)[2:-1].encode()
    yield secret.hex().encode()
    yield base64.b64encode(secret).rstrip(b"=")[:-1]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Planted, RunningServer]]:
    folder = tmp_path_factory.mktemp("planted")
    known = Planted(folder)
    settings = known.settings()
    with RunningServer(folder, rocketmq=True, log_level="debug") as first:
        client = Client(first.address("remoting"))
        body = json.dumps({"password": ADMIN, "userType": "Super"}).encode()
        assert client.ask(C.AUTH_CREATE_USER, {"username": "admin"}, body).code == 0
        client.socket.close()
        first.stop_cleanly()
    server = RunningServer(
        folder, rocketmq=True, settings=settings, flags=["--kafka", "off"], log_level="debug"
    )
    with server:
        known.tell(server)
        yield known, server
        server.stop_cleanly()


def assert_nothing(known: Planted, output: bytes, where: str) -> None:
    for name, secret in known.secrets.items():
        for spelling in spellings(secret):
            at = output.find(spelling)
            around = output[max(at - 120, 0) : at + 120]
            assert at < 0, f"the {name} is in {where}: {around!r}"


def test_no_secret_is_logged_at_any_level(planted: tuple[Planted, RunningServer]) -> None:
    known, server = planted
    log = server.log
    assert "DEBUG" in log.upper() and "rejected" in log and "authenticated" in log
    assert "mechanism=OAUTHBEARER" in log and "mechanism=SIGNATURE" in log
    assert "Traceback" not in log
    assert_nothing(known, log.encode(), "the log")


def test_no_answer_shows_a_secret(planted: tuple[Planted, RunningServer]) -> None:
    known, _ = planted
    assert any(b"rockgate_" in answer for answer in known.answers), "the pages were read"
    for answer in known.answers:
        assert_nothing(known, answer, "an answer")


def test_settings_are_shown_without_secrets(planted: tuple[Planted, RunningServer]) -> None:
    known, _ = planted
    arguments = [part for each in known.settings() for part in ("--set", each)]
    shown = Terminal("127.0.0.1:1").run("config", *arguments)
    assert "key.password" in shown, "the file is named"
    assert_nothing(known, shown.encode(), "rockgate config")


def test_no_password_is_in_the_data_directory_and_none_is_dumped(
    planted: tuple[Planted, RunningServer],
) -> None:
    known, server = planted
    terminal = Terminal("127.0.0.1:1")
    for flags in ((), ("--json",)):
        with contextlib.suppress(UnicodeDecodeError):
            out = terminal.run("log", "dump", "--data-dir", str(server.data_dir), *flags)
        assert "rmq_sys_rockgate_users" in out
        assert_nothing(known, out.encode(), "rockgate log dump")
    files = [path for path in server.data_dir.rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        assert_nothing(known, path.read_bytes(), str(path))
