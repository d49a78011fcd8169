"""Jepsen's Kafka workload against a server that is killed, paused and restarted."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.budget import budget
from tests.gateway.server import RunningServer
from tests.jepsen.checker import check
from tests.jepsen.history import History, Outcome
from tests.jepsen.workers import PARTITIONS, TOPIC, Values, Worker, abort_leftovers, read_all
from tests.seeds import seeded
from tests.waiting import wait_until

WORKERS = 3
PAUSE_SECONDS = 0.7


def kill(server: RunningServer) -> None:
    server.kill()
    server.restart()


def stop(server: RunningServer) -> None:
    assert server.stop() == 0
    server.restart()


def pause(server: RunningServer) -> None:
    server.signal(signal.SIGSTOP)
    # Long enough for requests to pile up: the clients' own threads continue meanwhile.
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(PAUSE_SECONDS)
    server.signal(signal.SIGCONT)


FAULTS = (kill, kill, pause, stop)


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_no_anomaly_under_kills_pauses_and_restarts(tmp_path: Path, flush: str) -> None:
    random = seeded()
    with RunningServer(tmp_path, settings=[f"store.flush={flush}"]) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(60)
        history, faults = run(server, random)
        assert "Traceback" not in server.log
    outcomes = Counter(each.outcome for each in history.transactions)
    sys.stdout.write(
        f"{len(history.transactions)} transactions {dict(outcomes)}, faults {dict(faults)}" + "\n"
    )
    violations = check(history)
    assert violations == [], f"{len(violations)} violations"
    assert outcomes[Outcome.OK] > 20
    assert history.final


def run(server: RunningServer, random: Random) -> tuple[History, Counter[str]]:
    values = Values()
    workers = [
        Worker(number, server.bootstrap, values, Random(random.randrange(1 << 32)))
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()

    def wait(more: int) -> None:
        target = _committed(workers) + more
        wait_until(lambda: _committed(workers) >= target, f"{more} more are committed", 120)

    faults: Counter[str] = Counter()
    wait(20)
    for _ in range(budget("jepsen_faults")):
        fault = random.choice(FAULTS)
        faults[fault.__name__] += 1
        fault(server)
        wait(random.randrange(10, 40))
    for worker in workers:
        worker.end()
    for worker in workers:
        worker.join(120)
        assert not worker.is_alive(), "a worker hangs"
        if worker.failure is not None:
            raise worker.failure
    abort_leftovers(server.bootstrap, WORKERS)
    transactions = [each for worker in workers for each in worker.history]
    return History(transactions, read_all(server.bootstrap)), faults


def _committed(workers: list[Worker]) -> int:
    return sum(each.outcome is Outcome.OK for worker in workers for each in list(worker.history))
