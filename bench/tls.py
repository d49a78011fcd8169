"""How does our Kafka listener compare with Apache Kafka when connections are encrypted?

Defends, as medians of five with messages of 1 KB over TLS 1.3: producing and consuming at least at
Kafka's rate, with at most 0.7 of its CPU time per gigabyte. And while as many clients as one core
can serve begin TLS handshakes, one after the other, the responses to others take at most 100 ms in
99 of 100 cases.

    python -m bench.tls                    everything; the results are written to bench/results/
    python -m bench.tls --quick            a smoke test of a minute, not written
    python -m bench.tls --only handshakes  a part; the file is named after it

Both servers have the same certificate (ECDSA on P-256) and take turns; while one is measured the
other is paused (SIGSTOP). The client is librdkafka, with the settings of bench.kafka, that trusts
the certificate's authority. Clients of the storm are processes that connect, complete the
handshake, and close; the other client sends a Produce of one message over TLS at a time.
"""

import datetime
import ssl
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.load import handshakes, kafka_frames, rdkafka
from bench.measure import results
from bench.measure.procfs import cpu_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import KafkaPeer, jars
from bench.peers.daemon import Daemon
from bench.peers.ports import HOST, free_ports
from bench.peers.rockgate import RockgateServer
from rockgate.gateway.security.tls.authority import Authority

OURS, THEIRS = "rockgate", "kafka"
SIZE = 1024
RATE_MIN = 1.0
CPU_MAX = 0.7
P99_MS_MAX = 100.0
STORMERS = 2
STORM_TOPIC = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    megabytes: int
    storm_seconds: float


FULL = Plan(rounds=5, megabytes=500, storm_seconds=10.0)
QUICK = Plan(rounds=1, megabytes=100, storm_seconds=2.0)


class Certificates:
    """The files of a server's certificate, and of the authority that its clients trust."""

    def __init__(self, folder: Path) -> None:
        now = datetime.datetime.now(datetime.UTC)
        authority = Authority.new("bench", now)
        issued = authority.issue([HOST, "localhost"], now)
        self.ca = folder / "ca.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        self.both = folder / "both.pem"
        """Key and certificate in one file, as Kafka wants them."""
        self.ca.write_bytes(authority.pem.certificate)
        self.certificate.write_bytes(issued.certificate)
        self.key.write_bytes(issued.key)
        self.both.write_bytes(issued.key + issued.certificate)

    @property
    def client(self) -> dict[str, str]:
        """librdkafka's settings."""
        return {"security.protocol": "ssl", "ssl.ca.location": str(self.ca)}

    def context(self) -> ssl.SSLContext:
        """The context of a client."""
        return ssl.create_default_context(cafile=str(self.ca))

    def rockgate(self, port: int) -> list[str]:
        """Our settings: a listener with TLS beside the plain one."""
        return [
            f"kafka.listeners=SSL://{HOST}:{port}",
            f"tls.certificate_file={self.certificate}",
            f"tls.key_file={self.key}",
            "tls.version_min=1.3",
        ]

    def kafka(self, ports: tuple[int, int, int]) -> dict[str, str]:
        """Kafka's: the same."""
        plain, encrypted, controller = ports
        return {
            "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{encrypted}"
            f",CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{encrypted}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.both),
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.protocol": "TLSv1.3",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A server, its listener with TLS, and the other one."""

    pid: int
    address: tuple[str, int]
    other: Daemon

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the listener with TLS."""
        return "{}:{}".format(*self.address)

    def alone(self) -> AbstractContextManager[None]:
        """Pause the other server."""
        return self.other.held()


class Run(Sampling):
    """One run: its plan, its certificates, its servers, and the results so far."""

    def __init__(
        self,
        plan: Plan,
        report: Report,
        certificates: Certificates,
        servers: dict[str, Contender],
    ) -> None:
        super().__init__(report)
        self.plan = plan
        self.certificates = certificates
        self.servers = servers

    def turns(self) -> Iterator[tuple[int, str, Contender]]:
        """Every server once per round; the first one alternates."""
        # Before, a round that does not count: a JIT compiler warms up.
        for index in range(-1, self.plan.rounds):
            order = list(self.servers.items())
            for name, server in order if index % 2 == 0 else reversed(order):
                with server.alone():
                    yield index, name, server

    def ratio(
        self, case: str, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Add a bar for the median of the rounds' ratios."""
        samples = self.report.samples[case]
        pairs = zip(samples[OURS], samples[THEIRS], strict=True)
        share = statistics.median(ours / theirs for ours, theirs in pairs)
        bar = Bar(
            name=case,
            measured=round(share, 3),
            at_least=at_least,
            at_most=at_most,
            unit="times Kafka's",
        )
        self.report.bars.append(bar)


def throughput(run: Run) -> None:
    """Throughput and its CPU cost on the server, in and out."""
    count = run.plan.megabytes * 1_000_000 // SIZE
    loads = {"produce": rdkafka.produce, "consume": rdkafka.consume}
    for index, name, server in run.turns():
        topic = f"tls-{index + 1}"
        for verb, load in loads.items():
            before = cpu_seconds(server.pid)
            done = load(server.bootstrap, topic, SIZE, count, **run.certificates.client)
            spent = cpu_seconds(server.pid) - before
            if index >= 0:
                run.add(f"{verb} [MB/s]", name, done.megabytes_per_second)
                run.add(f"{verb} [server CPU s/GB]", name, spent / (done.payload_bytes / 1e9))
    for verb in loads:
        run.ratio(f"{verb} [MB/s]", at_least=RATE_MIN)
        run.ratio(f"{verb} [server CPU s/GB]", at_most=CPU_MAX)


def storm(run: Run) -> None:
    """The latency of one client while others begin as many handshakes as they can."""
    server, context = run.servers[OURS], run.certificates.context()
    seconds = run.plan.storm_seconds
    rdkafka.create_topic(server.bootstrap, STORM_TOPIC, 1, **run.certificates.client)
    with server.alone():
        calm = kafka_frames.one_in_flight(
            server.address, STORM_TOPIC, SIZE, seconds / 2, context=context
        )
        with handshakes.storm(server.address, run.certificates.ca, STORMERS) as counts:
            began, spent = counts(), cpu_seconds(server.pid)
            taken = kafka_frames.one_in_flight(
                server.address, STORM_TOPIC, SIZE, seconds, context=context
            )
            done, spent = counts() - began, cpu_seconds(server.pid) - spent
    for name, times in (("calm", calm), ("storm", taken)):
        for label, share in (("p50", 50), ("p99", 99)):
            found = statistics.quantiles(times, n=100)[share - 1] * 1e3
            run.add(f"others' Produce, {label} [ms]", name, found)
    run.add("handshakes [1/s]", "storm", done / seconds)
    run.add("server CPU [cores]", "storm", spent / seconds)
    run.report.bars.append(
        Bar(
            name="p99 of others during a storm of handshakes",
            measured=round(statistics.quantiles(taken, n=100)[98] * 1e3, 2),
            at_most=P99_MS_MAX,
            unit="ms",
        )
    )


CASES: dict[str, Callable[[Run], None]] = {"throughput": throughput, "handshakes": storm}


def run(plan: Plan = FULL, only: tuple[str, ...] = tuple(CASES)) -> Report:
    """Measure, and report which bars hold."""
    is_whole = set(only) == set(CASES)
    flags = [] if is_whole else [f"--only {name}" for name in only]
    report = Report(
        name="tls" if is_whole else f"tls-{'-'.join(only)}",
        command=" ".join(["python -m bench.tls", *flags]),
        question="How does our Kafka listener compare with Apache Kafka over TLS?",
        peers={"kafka": jars.version("kafka")},
        notes={
            "plan": "full" if plan is FULL else "quick",
            "message bytes": SIZE,
            "certificate": "ECDSA P-256, TLS 1.3",
            "openssl": ssl.OPENSSL_VERSION,
        },
    )
    plain, encrypted, controller, own = free_ports(4)
    with tempfile.TemporaryDirectory() as folder:
        certificates = Certificates(Path(folder))
        settings = certificates.kafka((plain, encrypted, controller))
        with (
            RockgateServer(settings=certificates.rockgate(own)) as ours,
            KafkaPeer(port=plain, controller_port=controller, settings=settings) as theirs,
        ):
            servers = {
                OURS: Contender(pid=ours.pid, address=(HOST, own), other=theirs.daemon),
                THEIRS: Contender(pid=theirs.pid, address=(HOST, encrypted), other=ours.daemon),
            }
            going = Run(plan, report, certificates, servers)
            for name in only:
                CASES[name](going)
    return report


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("tls", __doc__, quick="a smoke test of a minute")
    parser.add_argument("--only", action="append", choices=list(CASES), help="a part, or several")
    parser.add_argument("--write", action="store_true", help="write the results of --quick too")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL, tuple(arguments.only or CASES))
    return results.conclude(report, is_saved=arguments.write or not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
