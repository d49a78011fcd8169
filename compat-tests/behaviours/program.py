"""A client in its own process: a driver that communicates by lines of JSON.

A program reads requests from standard input and writes responses to standard output, one per line:

    {"id": 7, "do": "send", "on": 3, "topic": "t", "value": "dg==", …}
    {"id": 7, "ok": [0, 41]}  or  {"id": 7, "refused": [10, "too large"]}
    or  {"id": 7, "broken": "…"}

`refused` is a Kafka error with its code, `broken` is anything else. Bytes are base64 and null stays
null. `producer`, `consumer`, `member` and `admin` open one and return its number, which later
requests pass as `on`. Requests to one number take effect in order, requests to several are
independent, and the response to `send` comes when its outcome is known. Whatever is opened with a
`login` uses TLS, and logs in: {protocol, mechanism, user, password, ca, certificate, key}.

| request | fields | response |
| --- | --- | --- |
| producer | bootstrap and the fields of `Sending` | number |
| send | topic, value, key, headers, partition, timestamp_ms | [partition, offset] |
| flush, begin, commit, abort, close | | null |
| consumer | bootstrap, wait_ms_max, bytes_max | number |
| assign, seek | topic, partitions or partition, offset | null |
| poll | ms | [[partition, offset, key, value, [[name, value], …], timestamp_ms], …] |
| partitions | topic | [number, …] |
| beginning, end, offset_at | topic, partition, timestamp_ms | offset or null |
| member | bootstrap, group, topic, session_ms, instance | number |
| assignment, commit, committed | topic, partition | [partition, …], null, offset or null |
| sharer | bootstrap, group, topic, mode (implicit or explicit), records_max | number |
| poll, of a sharer | ms | [[partition, offset, value, deliveries], …] |
| acknowledge | partition, offset, type | null |
| commit, of a sharer | | {partition: code} |
| admin | bootstrap | number |
| create, grow, alter, delete | topic, partition_count, config | null |
| topics, groups | | [name, …] |
| configs | topic | {name: value} |
| delete_records | topic, partition, before | null |
| group, group_offsets, delete_group | group, topic | [state, count], {partition: offset}, null |
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import tempfile
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from behaviours.driver import (
    SECONDS_MAX,
    GroupState,
    Message,
    Place,
    Received,
    Refused,
    Sending,
    Shared,
)
from behaviours.login import login_fields

END_SECONDS_MAX = 10.0


class Broken(Exception):
    """The program failed, or ended, instead of responding."""


class Program:
    """One process and its pending requests."""

    def __init__(self, command: Sequence[str]) -> None:
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed when the process ends
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._is_over = False
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, do: str, **fields: object) -> Future[Any]:
        """Send a request; the future gets the response."""
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise Broken(f"the program has ended:\n{self._said()}")
            number = next(self._numbers)
            self._waiting[number] = future
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"id": number, "do": do, **fields}).encode())
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        return future

    def end(self) -> None:
        """End it cleanly, by closing its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._leave()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._leave()

    def _leave(self) -> None:
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"])
            if "refused" in answer:
                future.set_exception(Refused(*answer["refused"]))
            elif "broken" in answer:
                future.set_exception(Broken(answer["broken"]))
            else:
                future.set_result(answer["ok"])
        with self._lock:
            self._is_over = True
            left, self._waiting = self._waiting, {}
        for future in left.values():
            future.set_exception(Broken(f"the program has ended:\n{self._said()}"))

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-4000:]


class _Handle:
    """Something that a program has opened."""

    def __init__(self, program: Program, kind: str, **fields: object) -> None:
        self._program = program
        self._number = program.ask(kind, **fields).result(SECONDS_MAX)

    def _start(self, do: str, **fields: object) -> Future[Any]:
        return self._program.ask(do, on=self._number, **fields)

    def _ask(self, do: str, **fields: object) -> Any:
        return self._start(do, **fields).result(2 * SECONDS_MAX)

    def close(self) -> None:
        self._ask("close")


class _Promise:
    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def result(self) -> Place:
        return Place(*self._future.result(2 * SECONDS_MAX))


class _Producer(_Handle):
    def send(self, topic: str, message: Message) -> _Promise:
        return _Promise(
            self._start(
                "send",
                topic=topic,
                value=_coded(message.value),
                key=_coded(message.key),
                headers=[[name, _coded(value)] for name, value in message.headers],
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
        )

    def flush(self) -> None:
        self._ask("flush")

    def begin(self) -> None:
        self._ask("begin")

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")


class _Consumer(_Handle):
    def assign(self, topic: str, partitions: Sequence[int], offset: int = 0) -> None:
        self._ask("assign", topic=topic, partitions=list(partitions), offset=offset)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._ask("seek", topic=topic, partition=partition, offset=offset)

    def poll(self, seconds: float) -> list[Received]:
        return [
            Received(
                partition,
                offset,
                _decoded(key),
                _decoded(value),
                tuple((name, _decoded(text)) for name, text in headers),
                timestamp_ms,
            )
            for partition, offset, key, value, headers, timestamp_ms in self._ask(
                "poll", ms=int(seconds * 1000)
            )
        ]

    def partitions(self, topic: str) -> list[int]:
        return sorted(self._ask("partitions", topic=topic))

    def beginning(self, topic: str, partition: int) -> int:
        return int(self._ask("beginning", topic=topic, partition=partition))

    def end(self, topic: str, partition: int) -> int:
        return int(self._ask("end", topic=topic, partition=partition))

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found: int | None = self._ask(
            "offset_at", topic=topic, partition=partition, timestamp_ms=timestamp_ms
        )
        return found

    def assignment(self) -> set[int]:
        return set(self._ask("assignment"))

    def commit(self) -> None:
        self._ask("commit")

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self._ask("committed", topic=topic, partition=partition)
        return found


class Sharer(_Handle):
    """A member of a share group."""

    def poll(self, seconds: float) -> list[Shared]:
        """Records that were acquired, with how often each was delivered."""
        return [
            Shared(partition, offset, _decoded(value), deliveries)
            for partition, offset, value, deliveries in self._ask("poll", ms=int(seconds * 1000))
        ]

    def acknowledge(self, record: Shared, type_: int) -> None:
        """Say what became of a record; `commit`, or the next poll, sends that."""
        self._ask("acknowledge", partition=record.partition, offset=record.offset, type=type_)

    def commit(self) -> Mapping[int, int]:
        """Send what was acknowledged; the code of each partition that something was said of."""
        return {int(each): code for each, code in self._ask("commit").items()}


class _Admin(_Handle):
    def create(
        self, topic: str, partition_count: int, config: Mapping[str, str] | None = None
    ) -> None:
        config = dict(config or {})
        self._ask("create", topic=topic, partition_count=partition_count, config=config)

    def grow(self, topic: str, partition_count: int) -> None:
        self._ask("grow", topic=topic, partition_count=partition_count)

    def delete(self, topic: str) -> None:
        self._ask("delete", topic=topic)

    def topics(self) -> set[str]:
        return set(self._ask("topics"))

    def configs(self, topic: str) -> Mapping[str, str]:
        found: Mapping[str, str] = self._ask("configs", topic=topic)
        return found

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        self._ask("alter", topic=topic, config=dict(config))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._ask("delete_records", topic=topic, partition=partition, before=before)

    def groups(self) -> set[str]:
        return set(self._ask("groups"))

    def group(self, group: str) -> GroupState:
        return GroupState(*self._ask("group", group=group))

    def group_offsets(self, group: str, topic: str) -> Mapping[int, int]:
        found = self._ask("group_offsets", group=group, topic=topic)
        return {int(partition): offset for partition, offset in found.items()}

    def delete_group(self, group: str) -> None:
        self._ask("delete_group", group=group)


class ProgramDriver:
    """A client whose program is started on first use."""

    def __init__(
        self,
        command: Callable[[], Sequence[str]],
        *,
        codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd"),
        why_not: str = "",
        sends_null_headers: bool = True,
        cannot: Mapping[str, str] | None = None,
        protocol: str = "classic",
    ) -> None:
        self.codecs = codecs
        self.why_not = why_not
        self.sends_null_headers = sends_null_headers
        self.cannot = cannot or {}
        self.protocol = protocol
        """Of the groups of its members."""
        self._command = command
        self._running: Program | None = None

    @property
    def program(self) -> Program:
        """Its process."""
        if self._running is None:
            self.start()
        assert self._running is not None
        return self._running

    def start(self) -> None:
        """Install the client if necessary, and start its process."""
        self._running = Program(self._command())

    def producer(self, bootstrap: str, sending: Sending) -> _Producer:
        return _Producer(
            self.program,
            "producer",
            bootstrap=bootstrap,
            acks=sending.acks,
            is_idempotent=sending.is_idempotent,
            codec=sending.codec,
            linger_ms=sending.linger_ms,
            request_bytes_max=sending.request_bytes_max,
            transactional_id=sending.transactional_id,
            transaction_timeout_ms=sending.transaction_timeout_ms,
            **login_fields(bootstrap),
        )

    def consumer(
        self, bootstrap: str, *, wait_ms_max: int = 500, bytes_max: int = 1 << 20
    ) -> _Consumer:
        return _Consumer(
            self.program,
            "consumer",
            bootstrap=bootstrap,
            wait_ms_max=wait_ms_max,
            bytes_max=bytes_max,
            **login_fields(bootstrap),
        )

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int | None = None,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> _Consumer:
        return _Consumer(
            self.program,
            "member",
            bootstrap=bootstrap,
            group=group,
            topic=topic,
            session_ms=session_ms,
            instance=instance,
            protocol=protocol or self.protocol,
            **login_fields(bootstrap),
        )

    def sharer(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        is_explicit: bool = False,
        records_max: int | None = None,
    ) -> Sharer:
        """A member of a share group."""
        return Sharer(
            self.program,
            "sharer",
            bootstrap=bootstrap,
            group=group,
            topic=topic,
            mode="explicit" if is_explicit else "implicit",
            records_max=records_max,
            **login_fields(bootstrap),
        )

    def admin(self, bootstrap: str) -> _Admin:
        return _Admin(self.program, "admin", bootstrap=bootstrap, **login_fields(bootstrap))

    def apart(self) -> ProgramDriver:
        return ProgramDriver(
            self._command,
            codecs=self.codecs,
            why_not=self.why_not,
            sends_null_headers=self.sends_null_headers,
            cannot=self.cannot,
            protocol=self.protocol,
        )

    def kill(self) -> None:
        """Kill its process, if it has one."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def end(self) -> None:
        """End its process cleanly, if it has one."""
        if self._running is not None:
            self._running.end()
            self._running = None


def _coded(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
