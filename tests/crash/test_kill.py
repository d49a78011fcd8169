"""kill -9 of a real process on a real disk, while it appends, rolls, flushes and snapshots."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.budget import budget
from tests.crash.writer import config, topics
from tests.seeds import seeded
from tests.store.reading import entries

from rockgate.gateway.topics.policy import queue_policy
from rockgate.protocol import entry as envelope
from rockgate.store.clock import SystemClock
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.store import Store

PHASES = ("roll", "checkpoint", "snapshot", "retention", "move")
ROOT = Path(__file__).resolve().parents[2]


class Round:
    """One run of the writer: what was acknowledged to it, and what it was doing when it died."""

    def __init__(self, directory: Path, flush: str, random: Random) -> None:
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.open_phases: Counter[str] = Counter()
        command = [sys.executable, "-m", "tests.crash.writer", str(directory), flush]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=_env()) as process:
            assert process.stdout is not None
            # Half of the runs end in the middle of a phase, the others after a number of lines;
            # none before something was acknowledged.
            phase = random.choice(PHASES) if random.random() < 0.5 else None
            lines_left = random.randint(50, 4_000)
            for line in process.stdout:
                self._take(line)
                lines_left -= 1
                if not self.acknowledged:
                    continue
                if lines_left <= 0 and (phase is None or line == b"+%b\n" % phase.encode()):
                    break
                if lines_left < -20_000:
                    break
            process.kill()
            for line in process.stdout:
                self._take(line)
            assert process.wait() == -9, "the writer died by itself"

    def _take(self, line: bytes) -> None:
        text = line.decode()
        if text.startswith("a "):
            _, queue_id, offset, serial = text.split()
            self.acknowledged[int(queue_id), int(offset)] = int(serial)
        elif text[0] in "+-":
            self.open_phases[text[1:].strip()] += 1 if text[0] == "+" else -1


def _env() -> dict[str, str]:
    rooms = ("protocol", "store", ".")
    return {"PYTHONPATH": ":".join(str(ROOT / room) for room in rooms), "PATH": "/usr/bin:/bin"}


def _check(directory: Path, flush: str, acknowledged: dict[tuple[int, int], int]) -> None:
    store = Store(
        DiskDirectory(directory), config(flush), SystemClock(), policy_of=queue_policy
    ).begin_epoch()
    for number, queue in enumerate(q for t in topics(store) for q in store.queues.of(t.id)):
        offset = queue.log_start
        found: dict[int, bytes] = {}
        while offset < queue.next_offset:
            for unit, view in entries(store, queue, offset, 1 << 16):
                assert unit.base == offset, "offsets follow each other without a gap"
                envelope.check(view, envelope.read(view))
                found[unit.base] = bytes(envelope.body_of(view)[:12])
                offset = unit.base + unit.offset_count
        for (queue_id, wanted), serial in acknowledged.items():
            if queue_id == number and wanted >= queue.log_start:
                assert found.get(wanted) == b"%012d" % serial, f"offset {wanted} was acknowledged"
    store.close()


@pytest.mark.row("S-03")
@pytest.mark.row("S-10")
@pytest.mark.parametrize("flush", ["async", "sync"])
def test_what_was_acknowledged_is_there_after_kill_9(flush: str, tmp_path: Path) -> None:
    random = seeded()
    phases: Counter[str] = Counter()
    rounds = budget("kill_rounds")
    acknowledged: dict[Path, dict[tuple[int, int], int]] = {}
    for number in range(rounds):
        directory = tmp_path / "data" if number % 5 else tmp_path / f"data-{number}"
        life = Round(directory, flush, random)
        phases.update(phase for phase, depth in life.open_phases.items() if depth > 0)
        assert life.acknowledged, "the writer never got anywhere"
        promised = acknowledged.setdefault(directory, {})
        promised.update(life.acknowledged)
        _check(directory, flush, promised)
    within = sum(phases.values())
    sys.stdout.write(f"{rounds} kills with {flush} flush, {within} within {dict(phases)}\n")
    # Of a hundred, at least twenty fall into some upkeep; a handful promises nothing.
    assert within * 5 >= rounds - 10
