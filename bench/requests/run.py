"""How long does a second client wait while another one sends the largest legal request?

One server has 10,000 topics and 50,000 groups. Every API of the Kafka protocol, every RocketMQ
request code and every HTTP page then gets a request of the maximum legal size, while a second
client sends ApiVersions all the time; its longest wait is the stall of that request. It defends: no
request stalls others for more than 50 ms.

    python -m bench.requests                   everything; the result goes to bench/results/
    python -m bench.requests --quick           a hundredth of everything; nothing is written
    python -m bench.requests --only offset     what has the word in its name; nothing is written
    python -m bench.requests --listener remoting   one listener's; nothing is written

A request is a row of a table: a name, a listener, and a function that makes its frames from the
loaded data (`bench.requests.world`). Kafka's are in `bench.requests.kafka`,
`bench.requests.kafka_changes`, `bench.requests.kafka_single`, `bench.requests.kafka_share` and
`bench.requests.kafka_security`, those of RocketMQ remoting and of the name server in
`bench.requests.remoting`,
`bench.requests.messages`, `bench.requests.admin`, `bench.requests.members` and
`bench.requests.remoting_security`, those of HTTP here, and incomplete requests in
`bench.requests.half`. To add one, add a row to its module's `REQUESTS`. Frames are sent on one
connection, each after the response to the previous one; all but the last are preparation and not
measured. Requests that are not `is_changing` are repeated three times and the shortest stall
counts, because other processes of the machine can only prolong it.

Memory is measured as well. The requests create data, above all 100,000 topics and the quotas of
50,000 clients; so the server is restarted with the same data, and may have used at most 256 MB more
at the end than after the restart. Of that, fetch sessions account for 70 MB, 200,000 partitions at
most (`kafka.fetch_session_partitions_max`), which do not survive a restart; 20,000 queues of
deleted topics exist until their log is deleted; and 50 to 80 MB are fragmentation of the
interpreter's heap.
"""

import argparse
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.measure import results
from bench.measure.procfs import anonymous_bytes, thread_seconds
from bench.measure.results import Bar, Report
from bench.peers.answers import Address
from bench.peers.rockgate import RockgateServer
from bench.requests import (
    admin,
    half,
    kafka,
    kafka_changes,
    kafka_security,
    kafka_share,
    members,
    messages,
    remoting,
    remoting_security,
)
from bench.requests.world import (
    FULL,
    QUICK,
    Loaded,
    Request,
    Size,
    kafka_frame,
    load,
    read_command,
)
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest

STALL_MS_MAX = 50.0
ROUNDS = 3
PAUSE_SECONDS = 0.0005
IDLE_SECONDS = 1.0
ANSWER_SECONDS_MAX = 120.0
PIECE_SIZE = 1 << 18
_LENGTH_SIZE = 4
SETTLE_SECONDS = 15.0
"""By then malloc has released its free memory (`rockgate.gateway.runtime.malloc_trim`)."""
MEMORY_AT_END = "memory at the end, MB"
MEMORY_OF_STATE = "memory with the same data after a restart, MB"
LEFT_MB_MAX = 256.0


def _page(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode()


PAGES = (
    Request(name="HTTP /metrics", listener="http", make=lambda _: [_page("/metrics")]),
    Request(name="HTTP /ready", listener="http", make=lambda _: [_page("/ready")]),
)
REQUESTS: tuple[Request, ...] = (
    *kafka.REQUESTS,
    *remoting.REQUESTS,
    *messages.REQUESTS,
    *admin.REQUESTS,
    *members.REQUESTS,
    *PAGES,
    *half.REQUESTS,
    *kafka_share.REQUESTS,
    *kafka_security.FIRST,
    *remoting_security.FIRST,
    *kafka_security.REQUESTS,
    *remoting_security.REQUESTS,
    *kafka_security.DELETIONS,
    *kafka_changes.REQUESTS,
    *members.DELETIONS,
)


class Bystander(threading.Thread):
    """The second client: sends ApiVersions continuously, and records the longest wait."""

    def __init__(self, address: Address, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._connection = socket.create_connection(address, timeout=ANSWER_SECONDS_MAX)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = kafka_frame(ApiKey.API_VERSIONS, ApiVersionsRequest(), version=0)
        self._longest = 0.0
        self._most = 0.0
        self._count = 0
        self._is_over = False

    def run(self) -> None:
        """Send requests one after the other."""
        while not self._is_over:
            busy, began = thread_seconds(self._pid), time.perf_counter()
            self._connection.sendall(self._frame)
            read_frame(self._connection)
            waited = time.perf_counter() - began
            self._longest = max(self._longest, waited)
            self._most = max(self._most, thread_seconds(self._pid) - busy)
            self._count += 1
            time.sleep(PAUSE_SECONDS)
        self._connection.close()

    def take_ms(self) -> tuple[float, float]:
        """Return the longest wait since the last call, and the maximum CPU time of the loop in one.

        The current request is included. On a busy machine the longest wait need not be the one with
        the most CPU time.
        """
        until = self._count + 2
        while self._count < until and self.is_alive():
            time.sleep(PAUSE_SECONDS)
        longest, self._longest = self._longest, 0.0
        most, self._most = self._most, 0.0
        return longest * 1000, most * 1000

    def stop(self) -> None:
        """Stop sending."""
        self._is_over = True
        self.join()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of one request."""

    stalls_ms: list[float] = field(default_factory=list)
    computed_ms: list[float] = field(default_factory=list)
    """The maximum CPU time of the loop's thread during one wait: the rest of the stall belongs to
    other processes and threads."""
    seconds: float = 0.0
    request_bytes: int = 0
    answer_bytes: int | None = 0
    """None if the server closed the connection instead of responding."""
    code: int = 0
    """The code of RocketMQ's response: not 0 if the request was rejected."""

    @property
    def stall_ms(self) -> float:
        """The stall that counts."""
        return round(min(self.stalls_ms), 1)

    def line(self, name: str) -> str:
        """One line for display."""
        verdict = "    " if self.stall_ms <= STALL_MS_MAX else "OVER"
        answer = "closed" if self.answer_bytes is None else f"{self.answer_bytes / 1e6:.2f} MB"
        return (
            f"{verdict} {self.stall_ms:8.1f} ms  computed {min(self.computed_ms):7.1f} ms  "
            f"{self.seconds:6.2f} s  "
            f"{self.request_bytes / 1e6:6.2f} MB → {answer:>9}  {name}"
            f"{f' (code {self.code})' if self.code else ''}"
        )


def read_frame(connection: socket.socket) -> int:
    """Read and discard one response; return its size. ConnectionError if there is none."""
    head = b""
    while len(head) < _LENGTH_SIZE:
        more = connection.recv(_LENGTH_SIZE - len(head))
        if not more:
            raise ConnectionError("the server closed the connection")
        head += more
    size = left = int.from_bytes(head, "big")
    piece = bytearray(min(PIECE_SIZE, max(1, size)))
    while left:
        count = connection.recv_into(piece, min(left, len(piece)))
        if not count:
            raise ConnectionError("the server closed the connection")
        left -= count
    return size


def _read_command(connection: socket.socket, outcome: Outcome) -> int:
    """Read a command's response, and skip requests and notifications of the server before it."""
    with connection.makefile("rb") as stream:
        answer = read_command(connection, stream)
    outcome.code = answer.code
    return answer.size


def _read_page(connection: socket.socket) -> int:
    size = 0
    while more := connection.recv(PIECE_SIZE):
        size += len(more)
    return size


def _reader(listener: str, outcome: Outcome) -> Callable[[socket.socket], int]:
    if listener in ("remoting", "namesrv"):
        return lambda connection: _read_command(connection, outcome)
    return _read_page if listener == "http" else read_frame


def ask(world: Loaded, request: Request, bystander: Bystander) -> Outcome:
    """Send the frames of a request, as often as it may be repeated."""
    outcome = Outcome()
    for _ in range(1 if request.is_changing else ROUNDS):
        *before, last = request.make(world)
        if request.half_sent_by:
            _half_send(world, request, last, bystander, outcome)
            continue
        read = _reader(request.listener, outcome)
        address = world.listeners[request.listener]
        with socket.create_connection(address, timeout=ANSWER_SECONDS_MAX) as connection:
            for frame in before:
                connection.sendall(frame)
                read(connection)
            bystander.take_ms()
            began = time.perf_counter()
            try:
                connection.sendall(last)
                count = request.count if request.has_answer else 0
                outcome.answer_bytes = sum(read(connection) for _ in range(count))
            except ConnectionError:
                outcome.answer_bytes = None
            outcome.seconds = time.perf_counter() - began
            stall_ms, computed_ms = bystander.take_ms()
            outcome.stalls_ms.append(stall_ms)
            outcome.computed_ms.append(computed_ms)
        outcome.request_bytes = len(last)
    return outcome


def _half_send(
    world: Loaded, request: Request, frame: bytes, bystander: Bystander, outcome: Outcome
) -> None:
    """Send it incompletely on many connections at once; there is no response."""
    bystander.take_ms()
    began = time.perf_counter()
    half.send_half(world.listeners[request.listener], frame, request.half_sent_by)
    stall_ms, computed_ms = bystander.take_ms()
    outcome.seconds = time.perf_counter() - began
    outcome.stalls_ms.append(stall_ms)
    outcome.computed_ms.append(computed_ms)
    outcome.request_bytes, outcome.answer_bytes = len(frame) - 1, None


def measure(size: Size, requests: Sequence[Request]) -> tuple[dict[str, Outcome], dict[str, float]]:
    """Load a server and send everything; return results by name, and notes."""
    notes: dict[str, float] = {}
    outcomes: dict[str, Outcome] = {}
    with RockgateServer(rocketmq=True, http=True, settings=kafka_security.SETTINGS) as server:
        began = time.perf_counter()
        world = load(server.listeners, size)
        notes["load, seconds"] = round(time.perf_counter() - began, 1)
        notes["memory when loaded, MB"] = round(anonymous_bytes(server.pid) / 1e6, 1)
        bystander = Bystander(server.address, server.pid)
        bystander.start()
        time.sleep(IDLE_SECONDS)
        notes["stall of an idle server, ms"] = round(bystander.take_ms()[0], 1)
        for request in requests:
            outcomes[request.name] = outcome = ask(world, request, bystander)
            print(outcome.line(request.name), flush=True)
        bystander.stop()
        time.sleep(SETTLE_SECONDS)
        notes[MEMORY_AT_END] = round(anonymous_bytes(server.pid) / 1e6, 1)
        server.stop()
        server.start()
        time.sleep(IDLE_SECONDS)
        notes[MEMORY_OF_STATE] = round(anonymous_bytes(server.pid) / 1e6, 1)
    return outcomes, notes


def run(size: Size = FULL, requests: Sequence[Request] = REQUESTS) -> Report:
    """Measure, and apply the bar to every request."""
    outcomes, notes = measure(size, requests)
    report = Report(
        name="requests",
        question="how long does a second client wait while the largest requests are served?",
        peers={},
        command="python -m bench.requests",
        notes={"topics": size.topics, "groups": size.groups, **notes},
    )
    for name, outcome in outcomes.items():
        report.samples[f"{name}, ms"] = {
            "stall": [round(x, 1) for x in outcome.stalls_ms],
            "computed by the loop at most": [round(x, 1) for x in outcome.computed_ms],
        }
        report.bars.append(
            Bar(name=name, measured=outcome.stall_ms, at_most=STALL_MS_MAX, unit="ms")
        )
    left = round(notes[MEMORY_AT_END] - notes[MEMORY_OF_STATE], 1)
    report.bars.append(
        Bar(name="memory that no data explains", measured=left, at_most=LEFT_MB_MAX, unit="MB")
    )
    return report


def main() -> int:
    """Run it alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.requests", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth; nothing is written")
    parser.add_argument("--only", default="", metavar="WORD", help="what has WORD in its name")
    parser.add_argument("--listener", default="", help="kafka, remoting, namesrv or http")
    arguments = parser.parse_args()
    wanted = [
        each
        for each in REQUESTS
        if arguments.only.lower() in each.name.lower() and arguments.listener in ("", each.listener)
    ]
    if not wanted:
        parser.error("no request is called so")
    report = run(QUICK if arguments.quick else FULL, wanted)
    print(report.notes)
    is_saved = not (arguments.quick or arguments.only or arguments.listener)
    return results.conclude(report, is_saved=is_saved)
