"""Java's clients with TLS (`-Dtls.enable=true`), at our name server and broker, and at 5.5.0's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.rocketmq_brokers import (
    APACHE_IMMUNE,
    Broker,
    apache_broker,
    rockgate_broker,
)
from behaviours.running import Answering
from bench.peers import rocketmq
from bench.peers.jars import pinned_version
from tests.gateway.security.tls.certificates import Authority
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
TLS = "-Dtls.enable=true"
VERIFIED = ("-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true")
"""By default Java's client believes any certificate."""
LONG = pytest.mark.long


class Java(Answering):
    """The Java process."""

    def __init__(self, version: str, folder: Path, *flags: str) -> None:
        java, *rest = java_program(HERE, version, "Program")
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
        brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
        super().__init__([java, *quiet, brisk, *flags, *rest], folder / "java.log")

    def run(self, *words: object) -> str:
        _, said = self.ask(" ".join(map(str, words)))
        if said.startswith("FAIL"):
            raise AssertionError(said[5:].replace(" | ", "\n"))
        return said.removeprefix("ok").strip()

    def outcome(self, namesrv: str, topic: str) -> str:
        """How one send ends."""
        self.run("open-producer", topic, namesrv)
        return self.run("try-send", topic, topic)

    def is_served(self, namesrv: str, topic: str) -> None:
        """Wait for a send to succeed: the first handshake of a JVM may take longer than a send."""
        self.run("open-producer", topic, namesrv)
        wait_until(lambda: self.run("try-send", topic, topic) == "sent", "a message is sent", 60)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


Dial = Callable[..., Java]


@pytest.fixture(scope="module")
def dial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dial]:
    """A JVM for each set of flags, which hold for all of its clients."""
    made: dict[tuple[str, ...], Java] = {}

    def start(version: str, *flags: str) -> Java:
        if (version, *flags) not in made:
            try:
                made[version, *flags] = Java(version, tmp_path_factory.mktemp("java"), *flags)
            except CannotRun as reason:
                leave_out(reason)
                raise
        return made[version, *flags]

    yield start
    for java in made.values():
        java.run("close-all")
        java.end()


def settings(authority: Authority, mode: str, *more: str) -> list[str]:
    """Settings of a server whose RocketMQ listeners have TLS."""
    file, key = authority.issue("server")
    return [
        f"remoting.tls={mode}",
        f"namesrv.tls={mode}",
        f"tls.certificate_file={file}",
        f"tls.key_file={key}",
        *more,
    ]


Made = AbstractContextManager[Broker]


def brokers(mode: str, authority: Authority, folder: Path) -> Made:
    """The server; or Apache's broker, which is permissive and certifies itself."""
    if mode == rocketmq.NAME:
        return apache_broker(rocketmq.NAME)
    return rockgate_broker(folder, *settings(authority, mode))


@pytest.fixture(
    scope="module", params=["permissive", "enforcing", pytest.param(rocketmq.NAME, marks=LONG)]
)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def broker(
    mode: str, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    with brokers(mode, authority, tmp_path_factory.mktemp("broker")) as found:
        yield found


VERSIONS = pytest.mark.parametrize("version", ["v5", pytest.param("v4", marks=LONG)])


@VERSIONS
def test_messages_are_sent_and_read_over_tls(
    dial: Dial, broker: Broker, mode: str, version: str
) -> None:
    java = dial(version, TLS)
    topic = f"over-tls-{version}"
    java.is_served(broker.namesrv, f"{topic}-first")
    assert java.run("produce", broker.namesrv, topic, 0, 20) == "20"
    found = java.run("consume", broker.namesrv, topic, f"{topic}-g", 20)
    assert sorted(found.split(",")) == sorted(f"m{n}" for n in range(20))
    immune = APACHE_IMMUNE if mode == rocketmq.NAME else 1
    assert java.run("transaction", broker.namesrv, f"{topic}-decided", immune) == "10"


@VERSIONS
def test_a_client_without_tls_is_served_unless_it_is_demanded(
    dial: Dial, broker: Broker, mode: str, version: str
) -> None:
    java, topic = dial(version), f"plain-{version}"
    if mode == "enforcing":
        assert java.outcome(broker.namesrv, topic) != "sent"
    else:
        java.is_served(broker.namesrv, topic)


@VERSIONS
def test_a_client_verifies_the_server(
    dial: Dial, authority: Authority, version: str, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "another")
    trusting = dial(version, TLS, *VERIFIED, f"-Dtls.client.trustCertPath={authority.file}")
    wary = dial(version, TLS, *VERIFIED, f"-Dtls.client.trustCertPath={other.file}")
    with rockgate_broker(tmp_path, *settings(authority, "enforcing")) as broker:
        trusting.is_served(broker.namesrv, "verified")
        assert wary.outcome(broker.namesrv, "doubted") != "sent"


@VERSIONS
def test_a_certificate_says_who_a_client_is(
    dial: Dial, authority: Authority, version: str, tmp_path: Path
) -> None:
    more = (
        f"tls.client_ca_file={authority.file}",
        "tls.client_auth=required",
        "tls.principal_rules=RULE:^CN=(.*?),.*$/$1/L",
        "security.super_users=User:alice",
    )

    def client(name: str) -> Java:
        file, key = authority.issue(name, f"{name}-{version}")
        own = (f"-Dtls.client.certPath={file}", f"-Dtls.client.keyPath={key}")
        trusted = f"-Dtls.client.trustCertPath={authority.file}"
        return dial(version, TLS, *VERIFIED, trusted, *own)

    with rockgate_broker(tmp_path, *settings(authority, "enforcing", *more)) as broker:
        client("alice").is_served(broker.namesrv, "by-certificate")
        assert client("bob").outcome(broker.namesrv, "by-certificate") != "sent"
        nobody = dial(version, TLS, *VERIFIED, f"-Dtls.client.trustCertPath={authority.file}")
        assert nobody.outcome(broker.namesrv, "by-certificate") != "sent"
