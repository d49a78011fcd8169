"""How many instructions does a request cost our server, with authorization and without?

Defends: authorization, with 1,000 grants of which 100 are for prefixes, adds at most 2 % to a
request of one message: Kafka's Produce and Fetch, RocketMQ's send and pull.

    python -m bench.instructions                    the results are written to bench/results/
    python -m bench.instructions --against COMMIT   beside another commit; nothing is written

The server runs under valgrind's callgrind (`apt-get install valgrind`), so a count hardly depends
on what else the machine does; `bench.measure.callgrind` says what is counted. Requests are prebuilt
frames, sent one after the other over one connection; the median of several counts is taken.
"""

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.against import checked_out
from bench.load import kafka_frames, rdkafka, remoting_frames
from bench.measure import callgrind, results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling
from bench.peers.answers import Address
from bench.peers.rockgate import ROOT, RockgateServer
from rockgate.protocol.frames import FrameReader

WITH, WITHOUT = "with authorization", "without"
OURS, THEIRS = "this tree", "the other commit"
AT_MOST = 1.02
ROUNDS = 9
COUNT = 50
WARM_UPS = 3
SIZE = 1_000
LITERAL, PREFIXED = 900, 100
TOPIC, GROUP, USER = "orders", remoting_frames.GROUP, "User:ANONYMOUS"
ANSWER_SIZE_MAX = 64 << 20
SETTINGS = ("security.authorization=on",)
ADMIN = (*SETTINGS, f"security.super_users={USER}")
SECONDS_MAX = 300.0


class Load:
    """Requests of one message to a server, in lockstep."""

    def __init__(self, server: RockgateServer) -> None:
        self._kafka = server.listeners["kafka"]
        self._remoting = server.listeners["remoting"]
        produce = kafka_frames.Frames(TOPIC, SIZE)
        now_ms = int(time.time() * 1000)
        send = remoting_frames.send_frames(TOPIC, SIZE)
        numbers = range(COUNT)
        self._produces = [produce.next() for _ in numbers]
        self._fetches = kafka_frames.fetch_frames(self._kafka, TOPIC, COUNT)
        self._sends = [send(number, now_ms) for number in numbers]
        self._pulls = [remoting_frames.pull_frame(TOPIC, number, count=1) for number in numbers]

    def cases(self) -> dict[str, Callable[[], None]]:
        """What is counted, by name."""
        return {
            "produce": lambda: _lockstep(self._kafka, self._produces),
            "fetch": lambda: _lockstep(self._kafka, self._fetches),
            "send": lambda: _lockstep(self._remoting, self._sends),
            "pull": lambda: _lockstep(self._remoting, self._pulls),
        }


def _lockstep(address: Address, frames: Sequence[bytes]) -> None:
    """Send each request once the one before is answered."""
    with socket.create_connection(address, timeout=SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = FrameReader(ANSWER_SIZE_MAX)
        for frame in frames:
            connection.sendall(frame)
            answers: Sequence[memoryview] = ()
            while not answers:
                data = connection.recv(1 << 18)
                if not data:
                    raise rdkafka.LoadFailed("the server closed the connection")
                answers = reader.feed(data)


def grant(bootstrap: str) -> None:
    """Create the grants: a few for the client, and many for others."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED

    def allow(
        type_: ResourceType,
        name: str,
        pattern: ResourcePatternType,
        who: str,
        operation: AclOperation,
    ) -> AclBinding:
        allowed = AclPermissionType.ALLOW
        return AclBinding(type_, name, pattern, who, "*", operation, allowed)

    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    own = [
        allow(topic, TOPIC, literal, USER, AclOperation.READ),
        allow(topic, TOPIC, literal, USER, AclOperation.WRITE),
        allow(group, GROUP, literal, USER, AclOperation.READ),
    ]
    others = [
        allow(topic, f"other-{number}", literal, f"User:u{number}", AclOperation.READ)
        for number in range(LITERAL - len(own))
    ]
    # Names of many lengths: each length of a prefix is looked up.
    prefixes = [
        allow(topic, f"{TOPIC[: number % 7]}p{number}", prefixed, f"User:u{number}", operation)
        for operation in (AclOperation.READ,)
        for number in range(PREFIXED)
    ]
    for future in admin.create_acls([*own, *others, *prefixes]).values():
        future.result(SECONDS_MAX)


def _prepare(directory: Path) -> None:
    """Make a data directory with the topic and the grants."""
    with RockgateServer(directory, settings=ADMIN, rocketmq=True) as server:
        rdkafka.create_topic(server.bootstrap, TOPIC, 1)
        grant(server.bootstrap)


def _count(
    sampling: Sampling, name: str, root: Path, settings: Sequence[str], rounds: int, *, has: bool
) -> None:
    """Count every case of one server."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        if has:
            _prepare(directory)
        server = RockgateServer(
            directory,
            settings=settings,
            rocketmq=True,
            root=root,
            under=callgrind.command(directory),
            # The order of sets, and so the number of steps, is that of the other server.
            environ={"PYTHONHASHSEED": "0"},
        )
        server.start(SECONDS_MAX)
        try:
            if not has:
                rdkafka.create_topic(server.bootstrap, TOPIC, 1)
            counted = callgrind.Counted(server, directory).begin()
            for case, work in Load(server).cases().items():
                # The first requests make the interpreter specialize, and caches fill.
                for _ in range(WARM_UPS):
                    work()
                counts = [counted.count(work) for _ in range(rounds)]
                sampling.add(f"{case} [instructions]", name, round(median(counts) / COUNT))
        finally:
            server.stop()


def run(rounds: int = ROUNDS) -> Report:
    """Count requests with authorization and without."""
    report = Report(
        name="instructions",
        command="python -m bench.instructions",
        question="How many instructions does authorization add to a request of one message?",
        peers={WITHOUT: "the same server"},
        notes={"grants": LITERAL + PREFIXED, "message bytes": SIZE, "rounds": rounds},
    )
    sampling = Sampling(report)
    _count(sampling, WITHOUT, ROOT, ("security.authorization=off",), rounds, has=True)
    _count(sampling, WITH, ROOT, SETTINGS, rounds, has=True)
    _conclude(report, WITH, WITHOUT, AT_MOST)
    return report


def against(revision: str, rounds: int = ROUNDS) -> Report:
    """Count the same requests on this tree and on another commit, without authorization."""
    report = Report(name="instructions", question="", peers={THEIRS: revision})
    sampling = Sampling(report)
    with ExitStack() as stack:
        tree = stack.enter_context(checked_out(revision))
        _count(sampling, THEIRS, tree, (), rounds, has=False)
        _count(sampling, OURS, ROOT, (), rounds, has=False)
    _conclude(report, OURS, THEIRS, AT_MOST)
    return report


def _conclude(report: Report, name: str, beside: str, at_most: float) -> None:
    for case, samples in report.samples.items():
        ratio = round(samples[name][0] / samples[beside][0], 4)
        bar = Bar(name=case, measured=ratio, at_most=at_most, unit=f"of {beside}")
        report.bars.append(bar)


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="COMMIT", help="count beside another commit")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"counts of a case ({ROUNDS})")
    arguments = parser.parse_args()
    if arguments.against:
        return results.conclude(against(arguments.against, arguments.rounds), is_saved=False)
    return results.conclude(run(arguments.rounds), is_saved=arguments.rounds >= ROUNDS)


if __name__ == "__main__":
    sys.exit(main())
