"""Runs benchmarks: `python -m bench` most of them, `python -m bench codec` one, `--list` none.

Benchmarks that need gigabytes of disk or many minutes only run when they are named.
"""

import argparse
import sys
from collections.abc import Callable

from bench import (
    cluster,
    codec,
    delay,
    gateways,
    groups,
    kafka,
    mapping,
    pop,
    remoting,
    soak,
    spark,
    transactions,
    txn,
)
from bench.measure import results
from bench.measure.results import LeftOut, Report
from bench.requests import run as requests
from bench.sdk import official, push, send
from bench.store import compaction
from bench.store import report as store

BENCHMARKS: dict[str, Callable[[], Report]] = {
    "cluster": cluster.run,
    "codec": codec.run,
    "compaction": compaction.run,
    "delay": delay.run,
    "groups": groups.run,
    "kafka": kafka.run,
    "mapping": mapping.run,
    "official": official.run,
    "gateways": gateways.run,
    "pop": pop.run,
    "push": push.run,
    "remoting": remoting.run,
    "requests": requests.run,
    "sdk": send.run,
    "soak": soak.run,
    "spark": spark.run,
    "store": store.run,
    "store-big": store.run_big,
    "transactions": transactions.run,
    "txn": txn.run,
}
ONLY_BY_NAME = {"compaction", "delay", "soak", "store-big"}


def main() -> int:
    """Run the selected benchmarks; 1 if a bar fails."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--list", action="store_true", help="say what there is")
    arguments = parser.parse_args()
    if arguments.list:
        for name in BENCHMARKS:
            print(name)
        return 0
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no benchmark called {', '.join(sorted(unknown))}")
    status = 0
    for name in arguments.names or [name for name in BENCHMARKS if name not in ONLY_BY_NAME]:
        try:
            status |= results.conclude(BENCHMARKS[name](), is_saved=True)
        except LeftOut as reason:
            print(f"left out  {name}: {reason}")
    return status


if __name__ == "__main__":
    sys.exit(main())
