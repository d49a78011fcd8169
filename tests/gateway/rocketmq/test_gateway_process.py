"""`rockgate gateway` as operators run it: its pages, and a cluster that demands TLS and keys."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.cli.secured import Secured
from tests.gateway.rocketmq.kafka_side import SECONDS_MAX, create, produce, values_of

from rockgate.gateway.telemetry.cluster_metrics import CLUSTER_METRICS, FAILURES

STOP_SECONDS_MAX = 30
TOKEN = "0123456789abcdef"


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "rockgate.cli", "gateway", "--kafka", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--log-level", "warning", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.terminate()
            started.wait(STOP_SECONDS_MAX)


def listeners_of(started: subprocess.Popen[str]) -> dict[str, str]:
    assert started.stdout is not None
    words = started.stdout.readline().split()
    assert words[:1] == ["ready"], words
    return dict(each.split("=", 1) for each in words[1:])


def page(address: str, path: str, token: str = "") -> str:
    request = urllib.request.Request(f"http://{address}/{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        text: str = answer.read().decode()
    return text


def test_a_gateway_serves_over_a_cluster_with_tls_and_keys_and_shows_its_metrics(
    tmp_path: Path,
) -> None:
    secured, token = Secured(tmp_path), tmp_path / "token"
    secured.init()
    token.write_text(TOKEN)
    with secured.running() as server:
        name_server = "{}:{}".format(*server.address("namesrv"))
        with process("--name-servers", name_server) as refused:
            assert refused.wait(SECONDS_MAX) == 1
            assert refused.stderr is not None
            assert "Cannot reach the RocketMQ cluster" in refused.stderr.read()
        settings = {
            "rocketmq.client_config": secured.client_config,
            "http.token_file": token,
        }
        pairs = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        more = ("--name-servers", name_server, "--http", "127.0.0.1:0", *pairs)
        with process(*more) as started:
            listeners = listeners_of(started)
            kafka, http = listeners["kafka"], listeners["http"]
            create(kafka, "sealed", 2)
            assert produce(kafka, "sealed", [b"1", b"2"]) == []
            assert values_of(kafka, "sealed", 2) == [b"1", b"2"]
            check_records_are_not_deleted(kafka)
            check_pages(http)
            started.terminate()
            assert started.wait(STOP_SECONDS_MAX) == 0


def check_records_are_not_deleted(kafka: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    [deleted] = admin.delete_records([TopicPartition("sealed", 0, 1)]).values()
    with pytest.raises(KafkaException) as raised:
        deleted.result(SECONDS_MAX)
    assert raised.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert values_of(kafka, "sealed", 2) == [b"1", b"2"]


def check_pages(http: str) -> None:
    assert page(http, "health") == "ok\n"
    assert page(http, "ready") == "ready\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(http, "metrics")
    assert refused.value.code == 401
    refused.value.close()
    text = page(http, "metrics", TOKEN)
    names = {each.name for each in CLUSTER_METRICS} - {FAILURES.name}
    assert {name for name in names if f"# TYPE {name} " in text} == names
    assert "rockgate_cluster_brokers 1" in text
    assert "rockgate_cluster_slots_held 64" in text
    for request in ("SEND_BATCH_MESSAGE", "PULL_MESSAGE"):
        assert f'rockgate_cluster_request_seconds_count{{request="{request}"}}' in text
    assert 'rockgate_kafka_request_seconds_count{api="Produce"}' in text


def test_a_file_that_is_no_client_config_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONSENSE\n")
    with process(
        "--name-servers", "127.0.0.1:1", "--set", f"rocketmq.client_config={file}"
    ) as refused:
        assert refused.wait(SECONDS_MAX) == 1
        assert refused.stderr is not None
        assert "Cannot use rocketmq.client_config." in refused.stderr.read()
