"""Jobs log in by a file and the environment, and never by the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from typer.testing import CliRunner

from rockgate.pipeline.admin.kafka_python import translated
from rockgate.pipeline.cli import app
from rockgate.pipeline.cli.client_config import client_options, read_properties
from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.kafka import Cluster
from rockgate.sdk import properties

pytestmark = pytest.mark.row("SEC-11")

PASSWORD = 'a "quoted" pass\\word; with = and spaces'
NONE: Mapping[str, str] = {}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client.properties"


def test_a_file_of_kafka_s_tools_goes_to_the_client_as_it_is(file: Path) -> None:
    file.write_text(
        "# written by rockgate secure init\n"
        "bootstrap.servers=kafka.example:9092\n"
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        'sasl.jaas.config=x.ScramLoginModule required username="a" \\\n   password="b";\n'
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=/etc/ca.pem\n"
        "rocketmq.broker.addr=kafka.example:10911\n"
    )
    assert client_options(str(file), NONE) == {
        "bootstrap.servers": "kafka.example:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'x.ScramLoginModule required username="a" password="b";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
    }


def test_librdkafka_s_names_are_translated(file: Path) -> None:
    file.write_text(
        "metadata.broker.list=h:1\nsasl.mechanisms=PLAIN\nsasl.username=alice\n"
        f"sasl.password={PASSWORD.replace(chr(92), chr(92) * 2)}\nssl.ca.location=/ca.pem\n"
    )
    found = client_options(str(file), NONE)
    assert found["bootstrap.servers"] == "h:1"
    assert found["security.protocol"] == "SASL_SSL"
    assert found["ssl.truststore.location"] == "/ca.pem"
    assert found["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="alice" password="a \\"quoted\\" pass\\\\word; with = and spaces";'
    )
    assert "sasl.password" not in found and "sasl.username" not in found


def test_the_environment_goes_before_the_file_and_a_file_may_have_the_password(
    file: Path, tmp_path: Path
) -> None:
    file.write_text("sasl.username=alice\nsasl.password=one\nsecurity.protocol=SASL_PLAINTEXT\n")
    variables = {"ROCKGATE_CLIENT_SASL_PASSWORD": "two"}
    assert 'password="two"' in client_options(str(file), variables)["sasl.jaas.config"]
    secret = tmp_path / "password"
    secret.write_text("three\n")
    variables = {
        "ROCKGATE_CLIENT_SASL_USERNAME": "bob",
        "ROCKGATE_CLIENT_SASL_PASSWORD_FILE": str(secret),
    }
    found = client_options(None, variables)
    assert 'username="bob" password="three"' in found["sasl.jaas.config"]
    assert client_options(None, NONE) == {}


@settings(max_examples=budget("property_examples"), deadline=None)
@given(st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"), min_size=1))
def test_every_password_arrives_through_jaas(password: str) -> None:
    variables = {
        "ROCKGATE_CLIENT_SASL_USERNAME": password,
        "ROCKGATE_CLIENT_SASL_PASSWORD": password,
        "ROCKGATE_CLIENT_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }
    found: dict[str, Any] = translated(
        Cluster(bootstrap="h:1", options=client_options(None, variables))
    )
    assert found["sasl_plain_password"] == found["sasl_plain_username"] == password


@settings(max_examples=budget("property_examples"), deadline=None)
@given(st.text(st.sampled_from("ab= :\\\n\t#!u0e9\"'")))
def test_properties_are_read_as_the_sdk_reads_them(text: str) -> None:
    assert read_properties(text) == properties.read_properties(text)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("sasl.username=alice", "A login needs a user name and a password"),
        ("sasl.username=a\nsasl.password=secret\nsasl.mechanism=GSSAPI", "takes no user name"),
        ("ssl.key.location=/key.pem", "ssl.key.location has no counterpart"),
        ("sasl.username=a\nsasl.password=secret\\nb", "must not have line breaks"),
        (None, "Cannot read"),
    ],
)
def test_what_cannot_be_used_is_said_without_the_secret(
    file: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadOption, match=problem) as error:
        client_options(str(file), NONE)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "option",
    [
        'sasl.jaas.config=x.PlainLoginModule required username="a" password="hunter2";',
        "kafka.sasl.jaas.config=x required clientSecret='hunter2';",
        "ssl.key.password=hunter2",
        "ssl.truststore.password=hunter2",
        "ssl.keystore.key=hunter2",
        "sasl.password=hunter2",
        "sasl.oauthbearer.client.credentials.client.secret=hunter2",
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["archive", "-t", "t", "--into", "x", "--kafka-option"],
        ["mirror", "--from", "h:1", "-t", "t", "--checkpoint", "c", "--from-option"],
        ["mirror", "--from", "h:1", "-t", "t", "--checkpoint", "c", "--to-option"],
    ],
)
def test_a_secret_on_the_command_line_is_refused_with_the_reason(
    arguments: list[str], option: str
) -> None:
    done = CliRunner().invoke(app, [*arguments, option])
    assert done.exit_code == 2
    assert "every user of this machine can read the command line" in done.output
    assert "--client-config" in done.output and "hunter2" not in done.output


def test_a_cluster_is_shown_without_its_login() -> None:
    shown = repr(Cluster(bootstrap="h:1", options={"sasl.jaas.config": PASSWORD}))
    assert shown == "Cluster(bootstrap='h:1')"


def test_the_file_s_servers_are_used_unless_an_address_is_given(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def check(self: Any, *, is_here: bool) -> None:
        asked.append(f"{self.cluster.bootstrap} {self.cluster.options['acks']}")
        raise BadOption("It ends here.")

    monkeypatch.setattr("rockgate.pipeline.jobs.archive.Options.check", check)
    file.write_text("bootstrap.servers=of-the-file:9092\nacks=all\n")
    arguments = ["archive", "-t", "t", "--into", "x"]
    runner = CliRunner(env={"ROCKGATE_CLIENT_CONFIG": str(file)})
    runner.invoke(app, arguments)
    runner.invoke(app, [*arguments, "-b", "given:1"])
    runner.invoke(app, [*arguments, "--kafka-option", "acks=1"])
    assert asked == ["of-the-file:9092 all", "given:1 all", "of-the-file:9092 1"]
