"""How long does a second client wait while another sends the largest request there may be?

One server holds 10,000 topics and 50,000 groups. Every API of Kafka's wire, every code of
RocketMQ's remoting and every page of HTTP is then asked once for the most that it legally may be,
while a second client asks for ApiVersions all the time; the longest it waits is the stall of that
request. It defends: no request stalls anybody for more than 50 ms.

    python -m bench.requests                   everything; the result goes to bench/results/
    python -m bench.requests --quick           a hundredth of everything; nothing is written
    python -m bench.requests --only offset     what has the word in its name; nothing is written
    python -m bench.requests --listener remoting   one listener's; nothing is written

A request is a row of a table: a name, a listener, and a function that makes its frames of
the world that was loaded (`bench.requests.world`). Kafka's are in `bench.requests.kafka`,
`bench.requests.kafka_changes` and `bench.requests.kafka_single`, those of RocketMQ's remoting and
of the name server in `bench.requests.remoting`, `bench.requests.messages`,
`bench.requests.admin` and `bench.requests.members`, HTTP's here, and in `bench.requests.half`
what is never sent to its end.
To add one, add a row to its module's `REQUESTS`. Frames are sent one behind the other on one
connection, each when the one before it was answered; all but the last are preparation and not
measured. What is not `is_changing` is asked three times and the shortest stall counts, because
other processes of the machine can only make it longer.

What all of it leaves behind is measured, too. The requests make data, above all 100,000 topics and
the quotas of 50,000 clients; so the server is started again with the same data, and what it had at
the end may be 256 MB more than it has then. Of that fetch sessions remember 70 MB, 200,000
partitions at most (`kafka.fetch_session_partitions_max`), which no restart survives; 20,000 queues
of deleted topics wait for their log to go; and 50 to 80 MB are the interpreter's, which cannot give
pages back that anything is left in.
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
from bench.requests import admin, half, kafka, kafka_changes, members, messages, remoting
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
"""After that malloc has given back what it kept (`rockgate.gateway.runtime.malloc_trim`)."""
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
    *kafka_changes.REQUESTS,
    *members.DELETIONS,
)


class Bystander(threading.Thread):
    """The second client: asks for ApiVersions without end, and keeps the longest wait."""

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
        """Ask, wait, ask again."""
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
        """The longest wait since the last call, and the most the server's loop computed in one.

        That of the question under way is included. On a busy machine the longest wait need not be
        the one in which the loop computed most.
        """
        until = self._count + 2
        while self._count < until and self.is_alive():
            time.sleep(PAUSE_SECONDS)
        longest, self._longest = self._longest, 0.0
        most, self._most = self._most, 0.0
        return longest * 1000, most * 1000

    def stop(self) -> None:
        """Ask no more."""
        self._is_over = True
        self.join()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one request did."""

    stalls_ms: list[float] = field(default_factory=list)
    computed_ms: list[float] = field(default_factory=list)
    """The most that the loop's thread computed while one question waited: the rest of the stall is
    other processes' and threads'."""
    seconds: float = 0.0
    request_bytes: int = 0
    answer_bytes: int | None = 0
    """None if the server closed the connection in place of an answer."""
    code: int = 0
    """Of RocketMQ's answer: not 0 if the request was refused."""

    @property
    def stall_ms(self) -> float:
        """The stall that counts."""
        return round(min(self.stalls_ms), 1)

    def line(self, name: str) -> str:
        """One line for people."""
        verdict = "    " if self.stall_ms <= STALL_MS_MAX else "OVER"
        answer = "closed" if self.answer_bytes is None else f"{self.answer_bytes / 1e6:.2f} MB"
        return (
            f"{verdict} {self.stall_ms:8.1f} ms  computed {min(self.computed_ms):7.1f} ms  "
            f"{self.seconds:6.2f} s  "
            f"{self.request_bytes / 1e6:6.2f} MB → {answer:>9}  {name}"
            f"{f' (code {self.code})' if self.code else ''}"
        )


def read_frame(connection: socket.socket) -> int:
    """Read one answer and throw it away; its size. ConnectionError if there is none."""
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
    """Read a command's answer, beyond whatever the server tells or asks before it."""
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
    """Send it many times at once and never to its end; there is no answer."""
    bystander.take_ms()
    began = time.perf_counter()
    half.send_half(world.listeners[request.listener], frame, request.half_sent_by)
    stall_ms, computed_ms = bystander.take_ms()
    outcome.seconds = time.perf_counter() - began
    outcome.stalls_ms.append(stall_ms)
    outcome.computed_ms.append(computed_ms)
    outcome.request_bytes, outcome.answer_bytes = len(frame) - 1, None


def measure(size: Size, requests: Sequence[Request]) -> tuple[dict[str, Outcome], dict[str, float]]:
    """Load a server and ask everything; outcomes by name, and what else is worth a note."""
    notes: dict[str, float] = {}
    outcomes: dict[str, Outcome] = {}
    with RockgateServer(rocketmq=True, http=True) as server:
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
    """Measure, and hold every request to the bar."""
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
    is_kept = not (arguments.quick or arguments.only or arguments.listener)
    return results.conclude(report, is_kept=is_kept)
