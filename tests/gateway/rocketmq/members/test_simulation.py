"""Seeded storms of faults on virtual time: one coordinator a slot, and all is led again."""

from __future__ import annotations

import sys

from tests.budget import budget
from tests.gateway.rocketmq.members.observing import SETTLE_S, simulate
from tests.sdk.memorynet import run
from tests.seeds import seeded

FAULTS = 10


def test_storms_leave_one_leader_for_everything_and_never_two() -> None:
    random = seeded()
    muted = headless = 0.0
    for _ in range(budget("gateway_simulations")):
        seed = random.randrange(1 << 32)
        notes: list[str] = []
        try:
            seen = run(simulate(seed, faults=FAULTS, note=notes.append))
            assert not seen.twice, (seen.twice, seen.notes[:5])
            assert seen.headless == 0.0, f"led by nobody for {seen.headless:.1f} s more"
        except BaseException:
            sys.stdout.write(f"seed of the storm {seed}\n" + "\n".join(notes) + "\n")
            raise
        muted, headless = muted + seen.muted, max(headless, seen.headless)
    sys.stdout.write(f"two leaders while notifications were lost: {muted:.2f} partition-seconds\n")
    assert SETTLE_S <= 15.0
