"""Does the server's own memory stay flat while things come and go for half an hour?

bench/churn.py creates, writes and deletes topics, and sends new idempotent producers, transactional
ids and groups that never come back. What was deleted costs nothing once its log is gone; what
expires is bounded by the times below, which are minutes here where they are days by default. The
bar: from the tenth minute on, memory of the server's own grows by at most 0.2 MB a minute, by the
least-squares line through one sample a second.

There is no peer: what is measured against is the server's own past.

    python -m bench.soak                   half an hour
    python -m bench.soak --minutes 6 --only groups
"""

import argparse
import asyncio
import sys

import uvloop

from bench.load.churn import KINDS, Churn
from bench.measure import results
from bench.measure.procfs import anonymous_bytes
from bench.measure.results import Bar, Report
from bench.peers.rockgate import RockgateServer

MINUTES = 30.0
SETTLED = 1 / 3
"""The part of the run that fills what is bounded by time, and counts for nothing."""
GROWTH_MAX = 0.2
SETTINGS = (
    "store.segment_bytes=2097152",
    "store.retention_ms=60000",
    "store.retention_interval_ms=5000",
    "store.snapshot_interval_ms=10000",
    "kafka.producer_expiry_ms=60000",
    "transactions.id_expiry_ms=60000",
    "groups.offsets_retention_ms=60000",
    "groups.offsets_check_ms=10000",
    "groups.initial_delay_ms=0",
)
_MB = 1e6


async def _sample(pid: int, seconds: float, samples: list[float], churn: Churn) -> None:
    """Take a sample of memory every second, and show one a minute."""
    for second in range(int(seconds)):
        samples.append(round(anonymous_bytes(pid) / _MB, 2))
        if second % 60 == 0:
            print(f"{second // 60:3d} min  {samples[-1]:8.1f} MB  {churn.counts}", flush=True)
        await asyncio.sleep(1)


def slope(samples: list[float]) -> float:
    """Growth per sample of the least-squares line through them."""
    n = len(samples)
    middle, mean = (n - 1) / 2, sum(samples) / n
    spread = sum((x - middle) ** 2 for x in range(n))
    return sum((x - middle) * (y - mean) for x, y in enumerate(samples)) / spread


def run(minutes: float = MINUTES, kinds: tuple[str, ...] = tuple(KINDS)) -> Report:
    """Churn for a time and judge how memory grew."""
    report = Report(name="soak", question=(__doc__ or "").splitlines()[0], peers={})
    samples: list[float] = []
    with RockgateServer(settings=SETTINGS) as server:
        churn = Churn(server.address, {kind: KINDS[kind] for kind in kinds})

        async def both() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(churn.run(minutes * 60))
                tasks.create_task(_sample(server.pid, minutes * 60, samples, churn))

        uvloop.run(both())
    settled = samples[int(len(samples) * SETTLED) :]
    report.samples["own memory, MB, one a second"] = {"rockgate": samples}
    report.notes = {"minutes": minutes, "rounds": churn.counts, "settings": list(SETTINGS)}
    growth = round(slope(settled) * 60, 3)
    name = "own memory from the tenth minute on" if minutes == MINUTES else "own memory at the end"
    report.bars = [Bar(name=name, measured=growth, at_most=GROWTH_MAX, unit="MB a minute")]
    return report


def main() -> int:
    """Run it from a shell."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--only", choices=KINDS, action="append")
    given = parser.parse_args()
    report = run(given.minutes, tuple(given.only or KINDS))
    return results.conclude(report, is_kept=given.minutes == MINUTES and not given.only)


if __name__ == "__main__":
    sys.exit(main())
