"""Does the server's anonymous memory stay flat under half an hour of churn?

bench/load/churn.py creates, writes and deletes topics, and adds idempotent producers, transactional
ids and groups that never return. Deleted topics cost nothing once their log is deleted; what
expires is limited by the settings below, in minutes instead of the default days. The bar: from the
tenth minute on, anonymous memory grows by at most 0.2 MB per minute, by linear regression over one
sample per second.

There is no peer: the server is compared with its own past.

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
"""The part of the run in which time-limited state fills up; it does not count."""
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
    """Sample the memory every second, and print it every minute."""
    for second in range(int(seconds)):
        samples.append(round(anonymous_bytes(pid) / _MB, 2))
        if second % 60 == 0:
            print(f"{second // 60:3d} min  {samples[-1]:8.1f} MB  {churn.counts}", flush=True)
        await asyncio.sleep(1)


def slope(samples: list[float]) -> float:
    """Growth per sample, by linear regression."""
    n = len(samples)
    middle, mean = (n - 1) / 2, sum(samples) / n
    spread = sum((x - middle) ** 2 for x in range(n))
    return sum((x - middle) * (y - mean) for x, y in enumerate(samples)) / spread


def run(minutes: float = MINUTES, kinds: tuple[str, ...] = tuple(KINDS)) -> Report:
    """Run the churn for a time, and evaluate the growth of memory."""
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
    return results.conclude(report, is_saved=given.minutes == MINUTES and not given.only)


if __name__ == "__main__":
    sys.exit(main())
