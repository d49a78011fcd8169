"""Apicurio Registry, unmodified, with its schemas in Kafka (kafkasql), and its Avro serializers."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from behaviours.bringing import (
    CannotRun,
    cache_directory,
    java_classes,
    java_program,
    leave_out,
    pinned,
)
from behaviours.features import REGISTRY
from behaviours.steps import new_topic
from bench.peers.cached_directory import cached_directory
from bench.peers.daemon import Daemon
from bench.peers.ports import HOST, free_ports
from bench.peers.tools import find_java
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
VERSION = pinned(HERE / "v3" / "pom.xml", r"<peer.version>([^<]+)")
CLIENT = f"apicurio {VERSION}"
START_SECONDS_MAX = 240.0
PROGRAM_SECONDS_MAX = 180
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}],
}

pytestmark = [pytest.mark.java, pytest.mark.long]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, REGISTRY)


def unpacked() -> Path:
    """The registry's own archive, unpacked once."""
    archives = java_classes(HERE, "v3").glob("apicurio-registry-app-*.tar.gz")

    def fill(aside: Path) -> None:
        with tarfile.open(next(iter(archives))) as packed:
            packed.extractall(aside, filter="data")

    return cached_directory(cache_directory() / f"apicurio-{VERSION}", fill)


class Registry:
    """One process of the registry, whose storage are two topics of the server."""

    def __init__(self, name: str, directory: Path, bootstrap: str, storage: str) -> None:
        self._daemon = Daemon(name, directory / name)
        self._port = free_ports(1)[0]
        self.url = f"http://{HOST}:{self._port}/apis/registry/v3"
        self.confluent_url = f"http://{HOST}:{self._port}/apis/ccompat/v7"
        self._variables = {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self._port),
            "APICURIO_STORAGE_KIND": "kafkasql",
            "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
            "APICURIO_KAFKASQL_TOPIC": f"{storage}-journal",
            "APICURIO_KAFKASQL_SNAPSHOTS_TOPIC": f"{storage}-snapshots",
            # One beside the other must not see each other's database in memory.
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:mem:{storage}{name}",
        }

    def start(self) -> None:
        try:
            folder = unpacked()
        except CannotRun as reason:
            leave_out(reason)
            raise
        java = (str(find_java()), "-Xmx512m", "-XX:TieredStopAtLevel=1")
        self._daemon.start(
            [*java, "-jar", str(folder / "quarkus-run.jar")],
            is_ready=self.is_ready,
            environ={**os.environ, **self._variables},
            seconds_max=START_SECONDS_MAX,
        )

    def is_ready(self) -> bool:
        """Whether it has read its journal and takes requests."""
        try:
            self.ask("GET", f"{self.url}/system/info")
            self.ask("GET", f"{self.url}/search/artifacts")
        except OSError:
            return False
        return True

    def ask(self, method: str, url: str, body: Any = None) -> Any:
        """What it answers; it must not be an error."""
        request = urllib.request.Request(
            url,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def register(self, artifact: str, schema: Any) -> int:
        """Register a schema; return the number of its content."""
        content = {"content": json.dumps(schema), "contentType": "application/json"}
        body = {
            "artifactId": artifact,
            "artifactType": "AVRO",
            "firstVersion": {"content": content},
        }
        query = "ifExists=FIND_OR_CREATE_VERSION"
        made = self.ask("POST", f"{self.url}/groups/default/artifacts?{query}", body)
        return int(made["version"]["contentId"])

    def schema(self, number: int) -> Any:
        return self.ask("GET", f"{self.url}/ids/contentIds/{number}")

    def has(self, artifact: str) -> bool:
        path = f"{self.url}/groups/default/artifacts/{artifact}/versions/1/content"
        try:
            return self.ask("GET", path) is not None
        except OSError:
            return False

    def stop(self) -> None:
        self._daemon.stop()

    def kill(self) -> None:
        self._daemon.kill()


@pytest.fixture
def registry(server: RunningServer, tmp_path: Path) -> Iterator[Registry]:
    found = Registry("first", tmp_path, server.bootstrap, new_topic("registry"))
    found.start()
    yield found
    found.stop()


@feature("schemas are registered, and read back after a restart and a kill -9")
def test_schemas_are_read_back_after_a_restart(registry: Registry) -> None:
    numbers = {f"order-{at}": registry.register(f"order-{at}", schema(at)) for at in range(20)}
    assert len(set(numbers.values())) == len(numbers)
    registry.stop()
    registry.start()
    assert {name: registry.schema(number) for name, number in numbers.items()} == {
        f"order-{at}": schema(at) for at in range(20)
    }
    # The same schema gets the number that it has.
    assert registry.register("order-3", schema(3)) == numbers["order-3"]
    last = registry.register("last", schema(100))
    registry.kill()
    registry.start()
    assert registry.schema(last) == schema(100)
    assert registry.schema(numbers["order-7"]) == schema(7)


def schema(at: int) -> Any:
    return {**SCHEMA, "name": f"Order{at}"}


@feature("two registries on one journal: what one registers, the other has")
def test_two_registries_have_one_journal(
    registry: Registry, server: RunningServer, tmp_path: Path
) -> None:
    storage = registry._variables["APICURIO_KAFKASQL_TOPIC"].removesuffix("-journal")
    second = Registry("second", tmp_path, server.bootstrap, storage)
    second.start()
    try:
        number = registry.register("shared", SCHEMA)
        wait_until(lambda: second.has("shared"), "the second registry has it")
        assert second.schema(number) == SCHEMA
        second.register("back", schema(1))
        wait_until(lambda: registry.has("back"), "the first registry has it")
    finally:
        second.stop()


@feature("the API of Confluent's registry: subjects, versions, compatibility")
def test_the_api_of_confluent_s_registry(registry: Registry) -> None:
    subjects = f"{registry.confluent_url}/subjects"
    versions = f"{subjects}/orders-value/versions"
    made = registry.ask("POST", versions, {"schema": json.dumps(SCHEMA)})
    assert registry.ask("GET", subjects) == ["orders-value"]
    registry.ask(
        "PUT", f"{registry.confluent_url}/config/orders-value", {"compatibility": "BACKWARD"}
    )
    found = registry.ask("GET", f"{registry.confluent_url}/schemas/ids/{made['id']}")
    assert json.loads(found["schema"]) == SCHEMA
    grown = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "note", "type": "string"}]}
    asked = f"{registry.confluent_url}/compatibility/subjects/orders-value/versions/latest"
    answer = registry.ask("POST", asked, {"schema": json.dumps(grown)})
    assert answer["is_compatible"] is False
    registry.stop()
    registry.start()
    assert registry.ask("GET", versions) == [1]


@feature("Avro serializers in Java: a record carries the number of its schema, and is read by it")
def test_records_carry_the_number_of_their_schema(
    registry: Registry, server: RunningServer
) -> None:
    topic = new_topic("readings")
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    arguments = [server.bootstrap, registry.url, topic, "5"]
    readings(["write", *arguments])
    values = [value for value in read(server.bootstrap, topic, 5)]
    numbers = {int.from_bytes(value[1:5], "big") for value in values}
    assert all(value[0] == 0 for value in values)
    (number,) = numbers
    assert registry.schema(number)["name"] == "Reading"
    # One that has to ask the registry, which has to read its journal, for the schema.
    registry.stop()
    registry.start()
    expected = [{"sensor": f"s-{at}", "degrees": at / 2} for at in range(5)]
    assert [json.loads(line) for line in readings(["read", *arguments])] == expected


def readings(arguments: list[str]) -> list[str]:
    """What our program with the registry's serializers prints."""
    done = subprocess.run(
        [*java_program(HERE, "v3", "Readings"), *arguments],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """The first values of a topic, unchanged."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() for message in consumer.consume(count, 60)]
    consumer.close()
    assert len(found) == count
    return found
