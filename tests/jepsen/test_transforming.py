"""Consume, transform and produce exactly once, while client and server are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.budget import budget
from tests.gateway.server import ROOT, RunningServer, environment
from tests.jepsen.transformer import PARTITIONS, SOURCE, TARGET
from tests.seeds import seeded
from tests.waiting import wait_until


class Copies:
    """Reads what was committed to the target topic, and keeps all it has read."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "copies",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 300,
            }
        )
        self._consumer.assign([TopicPartition(TARGET, index, 0) for index in range(PARTITIONS)])
        self.values: list[list[int]] = [[] for _ in range(PARTITIONS)]

    def count(self) -> int:
        """How many there are, after reading what is new."""
        for message in self._consumer.consume(500, 0.05):
            if message.error() is None:
                self.values[message.partition()].append(int(message.value()))
        return sum(map(len, self.values))

    def wait_for(self, count: int, seconds: float) -> None:
        """Read until there are that many."""
        wait_until(lambda: self.count() >= count, f"{count} copies are there", seconds)

    def close(self) -> None:
        self._consumer.close()


def start(bootstrap: str, log: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.jepsen.transformer", bootstrap]
    variables = environment()
    variables["PYTHONPATH"] += f":{ROOT}"
    return subprocess.Popen(command, cwd=ROOT, env=variables, stderr=log)


def test_every_number_arrives_exactly_once(tmp_path: Path) -> None:
    random = seeded()
    kills = budget("transform_kills")
    each = 30
    with RunningServer(tmp_path) as server, (tmp_path / "transformer.log").open("wb") as log:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        topics = [NewTopic(name, PARTITIONS) for name in (SOURCE, TARGET)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        source = Producer(
            {"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "linger.ms": 0}
        )
        sent: list[list[int]] = [[] for _ in range(PARTITIONS)]
        total = 0
        copies = Copies(server.bootstrap)
        transformer = start(server.bootstrap, log)
        try:
            for kill in range(kills + 1):
                for _ in range(each):
                    partition = random.randrange(PARTITIONS)
                    source.produce(SOURCE, b"%d" % total, partition=partition)
                    sent[partition].append(total)
                    total += 1
                source.flush(60)
                if kill == kills:
                    break
                # Somewhere in the middle of what was just sent.
                copies.wait_for(total - random.randrange(1, each), 60)
                if random.random() < 0.5:
                    transformer.kill()
                    transformer.wait()
                    transformer = start(server.bootstrap, log)
                else:
                    server.kill()
                    server.restart()
            copies.wait_for(total, 90)
        finally:
            transformer.kill()
            transformer.wait()
            copies.close()
        assert "Traceback" not in server.log
        # And once more by a reader that saw nothing of it happen.
        again = Copies(server.bootstrap)
        again.wait_for(total, 30)
        again.close()
    assert copies.values == sent, "in order, none missing, none twice"
    assert again.values == sent
