"""Apache Kafka's tools with TLS and a JAAS login: users, grants and tokens set by an operator."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.driver import SECONDS_MAX
from behaviours.features import TOOLS
from behaviours.login import Login, jaas_module, java_properties
from behaviours.secured_server import SecuredServer
from behaviours.steps import new_topic
from bench.peers import PeerError
from bench.peers.jars import version
from bench.peers.kafka import tool_command

CLIENT = f"kafka-tools {version('kafka')}"
CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}

pytestmark = [pytest.mark.java, pytest.mark.long]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, TOOLS)


class Tools:
    """The tools of one user, with a file of properties."""

    def __init__(self, secured: SecuredServer, login: Login, folder: Path) -> None:
        self._bootstrap = secured.address(login)
        self._login = login
        self._config = folder / f"{login.user}-{login.mechanism}.properties"
        self._write(java_properties(login))
        self._flags: list[str] = []

    def _write(self, pairs: dict[str, str]) -> None:
        self._config.write_text("".join(f"{name}={value}\n" for name, value in pairs.items()))

    def use_jaas_file(self, file: Path, *options: str) -> None:
        """Have the login in a file of the whole JVM, and not among the properties."""
        pairs = java_properties(self._login)
        del pairs["sasl.jaas.config"]
        self._write(pairs)
        module = " ".join((jaas_module(self._login), *options))
        file.write_text(f"KafkaClient {{\n  {module};\n}};\n")
        self._flags = [f"-Djava.security.auth.login.config={file}"]

    def run(self, script: str, *arguments: str, typed: str = "", status: int = 0) -> str:
        """What a tool prints on both streams."""
        try:
            java, *rest = tool_command([CLASSES[script]])
        except PeerError as error:
            leave_out(CannotRun(str(error)))
            raise
        server = ("--bootstrap-server", self._bootstrap, "--command-config", str(self._config))
        done = subprocess.run(
            [java, *self._flags, *rest, *server, *arguments],
            input=typed,
            capture_output=True,
            text=True,
            timeout=4 * SECONDS_MAX,
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        return said


@pytest.fixture
def admin(secured: SecuredServer, tmp_path: Path) -> Tools:
    return Tools(secured, secured.administrator(), tmp_path)


@feature("kafka-acls: add, list, remove; kafka-configs: SCRAM users; a JAAS file")
def test_a_user_and_grants_made_by_kafka_s_tools(
    secured: SecuredServer, admin: Tools, tmp_path: Path
) -> None:
    topic, name = new_topic("tools-secured"), new_topic("tools-user")
    admin.run("kafka-topics", "--create", "--topic", topic, "--partitions", "1")
    scram = f"SCRAM-SHA-512=[password={name}-secret]"
    entity = ("--entity-type", "users", "--entity-name", name)
    admin.run("kafka-configs", "--alter", "--add-config", scram, *entity)
    described = admin.run("kafka-configs", "--describe", *entity)
    assert "SCRAM-SHA-512" in described and "secret" not in described
    who = ("--allow-principal", f"User:{name}")
    admin.run("kafka-acls", "--add", *who, "--producer", "--topic", topic)
    login = Login(ca=secured.ca, mechanism="SCRAM-SHA-512", user=name, password=f"{name}-secret")
    user = Tools(secured, login, tmp_path)
    user.use_jaas_file(tmp_path / "jaas.conf")
    user.run("kafka-console-producer", "--topic", topic, typed="one\ntwo\n")
    limits = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    read = ("--topic", topic, "--group", f"of-{topic}", *limits)
    # Its status is 0 nevertheless.
    said = user.run("kafka-console-consumer", *read)
    assert "GroupAuthorizationException" in said
    consumer = ("--consumer", "--topic", topic, "--group", f"of-{topic}")
    admin.run("kafka-acls", "--add", *who, *consumer)
    listed = admin.run("kafka-acls", "--list", "--topic", topic)
    assert f"principal=User:{name}" in listed and "operation=READ" in listed
    assert user.run("kafka-console-consumer", *read).splitlines()[:2] == ["one", "two"]
    admin.run("kafka-acls", "--remove", "--force", *who, *consumer)
    assert "operation=READ" not in admin.run("kafka-acls", "--list", "--topic", topic)


@feature("a login that is wrong, or not allowed to, is told as Kafka's class of error")
def test_what_a_refusal_says(secured: SecuredServer, tmp_path: Path) -> None:
    login = secured.new_user("tom")
    wrong = Tools(secured, replace(login, password="guess"), tmp_path)
    assert "SaslAuthenticationException: Authentication failed" in wrong.run(
        "kafka-topics", "--list", status=1
    )
    user = Tools(secured, login, tmp_path)
    assert user.run("kafka-topics", "--list").strip() == ""
    refused = user.run("kafka-topics", "--create", "--topic", "toms", status=1)
    assert "TopicAuthorizationException" in refused
    refused = user.run("kafka-acls", "--list", status=1)
    assert "ClusterAuthorizationException" in refused


@feature("kafka-delegation-tokens: create, describe, renew, log in, expire")
def test_a_token_is_made_used_and_ended(
    secured: SecuredServer, admin: Tools, tmp_path: Path
) -> None:
    login, topic = secured.new_user("tina"), new_topic("tools-token")
    secured.allow(login, topic)
    owner = Tools(secured, login, tmp_path)
    made = owner.run("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1")
    (line,) = [each for each in made.splitlines() if login.user in each]
    token_id, hmac = line.split()[:2]
    # Without an owner it asks for an empty list of owners.
    of_owner = ("--owner-principal", f"User:{login.user}")
    described = owner.run("kafka-delegation-tokens", "--describe", *of_owner)
    assert token_id in described
    by_token = Login(ca=secured.ca, mechanism="SCRAM-SHA-256", user=token_id, password=hmac)
    user = Tools(secured, by_token, tmp_path)
    user.use_jaas_file(tmp_path / "token.conf", 'tokenauth="true"')
    user.run("kafka-console-producer", "--topic", topic, typed="one\n")
    of_token = ("--hmac", hmac)
    owner.run("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", *of_token)
    owner.run("kafka-delegation-tokens", "--expire", "--expiry-time-period", "-1", *of_token)
    said = user.run("kafka-topics", "--list", status=1)
    assert "SaslAuthenticationException" in said
