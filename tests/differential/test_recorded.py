"""What Apache Kafka and Apache RocketMQ answered to random sequences, we answer too."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.budget import budget
from tests.differential.departures import differences
from tests.differential.kinds import KINDS, SETTINGS, played
from tests.differential.record import FOLDER
from tests.gateway.server import RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(
        tmp_path_factory.mktemp("differential"), settings=SETTINGS, rocketmq=True
    ) as running:
        yield running
        running.stop_cleanly()


@pytest.mark.parametrize("name", KINDS)
def test_recorded_sequences_are_answered_as_the_real_thing_did(
    name: str, server: RunningServer
) -> None:
    _, *lines = (FOLDER / f"{name}.jsonl").read_text().splitlines()
    failures = []
    for number, line in enumerate(lines[: budget("recorded_sequences")]):
        pairs = json.loads(line)
        sequence, theirs = [step for step, _ in pairs], [answer for _, answer in pairs]
        ours = json.loads(
            json.dumps(played(KINDS[name], server.address(KINDS[name].listener), sequence))
        )
        if found := differences(sequence, theirs, ours):
            failures.append(f"sequence {number}: {found[0]}\n  of {sequence}")
    assert not failures, "\n".join(failures)
