"""New sequences, run on us and on the real broker;

differences are shrunk before they are reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from tests.budget import budget
from tests.differential.departures import differences
from tests.differential.kinds import KINDS, SETTINGS, played
from tests.differential.peers import running
from tests.differential.player import Answer, Step
from tests.differential.shrinking import shrunk
from tests.gateway.server import RunningServer
from tests.jdk import Jdk
from tests.seeds import seeded


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(
        tmp_path_factory.mktemp("beside"), settings=SETTINGS, rocketmq=True
    ) as running:
        yield running


@pytest.mark.java
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", KINDS)
def test_new_sequences_are_answered_as_the_real_thing_does(
    name: str, java: Jdk, server: RunningServer
) -> None:
    kind, random = KINDS[name], seeded()
    with running(kind.listener) as peer:

        def compared(sequence: Sequence[Step]) -> list[str]:
            theirs = _plain(played(kind, peer.address, list(sequence)))
            ours = _plain(played(kind, server.address(kind.listener), list(sequence)))
            return differences(sequence, theirs, ours)

        for _ in range(budget("differential_sequences")):
            sequence = kind.sequence(random, kind.length)
            if compared(sequence):
                short = shrunk(sequence, lambda steps: bool(compared(steps)))
                raise AssertionError(f"{compared(short)} of {short}")


def _plain(answers: list[Answer]) -> list[Answer]:
    """As a file has them: tuples are lists."""
    return list(json.loads(json.dumps(answers)))
