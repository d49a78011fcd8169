"""A Python client in its own process: `python -m behaviours.hosting FILE CLASS`.

The process serves the driver CLASS of a test module in the protocol of program.py, so that a Python
client can be killed like all others.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import sys
import threading
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from behaviours.driver import Driver, Message, Refused, Sending
from behaviours.program import ProgramDriver

ROOT = Path(__file__).resolve().parents[2]


def apart(file: str, name: str, driver: Driver) -> ProgramDriver:
    """A driver that uses the driver class `name` of a test module, in its own process."""
    path = os.pathsep.join(map(str, (ROOT / "compat-tests", ROOT, ROOT / "protocol")))
    command = ["env", f"PYTHONPATH={path}", sys.executable, "-m", "behaviours.hosting", file, name]
    return ProgramDriver(
        lambda: command,
        codecs=driver.codecs,
        why_not=driver.why_not,
        sends_null_headers=driver.sends_null_headers,
        cannot=driver.cannot,
    )


class Host:
    """The open clients, each with its own thread."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._numbers = itertools.count(1)
        self._opened: dict[int, tuple[Any, ThreadPoolExecutor]] = {}
        self._lock = threading.Lock()

    def take(self, line: bytes) -> None:
        fields = json.loads(line)
        number, do, on = fields.pop("id"), fields.pop("do"), fields.pop("on", None)
        if on is None:
            self._answer(number, lambda: self._open(do, fields))
            return
        handle, thread = self._opened[on]
        thread.submit(self._answer, number, lambda: perform(handle, do, fields))

    def _open(self, kind: str, fields: dict[str, Any]) -> int:
        bootstrap = fields.pop("bootstrap")
        if kind == "producer":
            handle: Any = self._driver.producer(bootstrap, Sending(**fields))
        elif kind == "member":
            group, topic = fields.pop("group"), fields.pop("topic")
            handle = self._driver.member(bootstrap, group, topic, **fields)
        else:
            handle = getattr(self._driver, kind)(bootstrap, **fields)
        number = next(self._numbers)
        self._opened[number] = handle, ThreadPoolExecutor(1)
        return number

    def _answer(self, number: int, work: Any) -> None:
        try:
            told: dict[str, Any] = {"ok": work()}
        except Refused as refused:
            told = {"refused": [refused.code, str(refused)]}
        except Exception as error:  # noqa: BLE001 - reported to the test that asked
            told = {"broken": repr(error)}
        with self._lock:
            sys.stdout.write(json.dumps({"id": number, **told}) + "\n")
            sys.stdout.flush()


def perform(handle: Any, do: str, fields: dict[str, Any]) -> Any:
    if do == "poll":
        return [
            [*each[:2], coded(each.key), coded(each.value), headers(each), each.timestamp_ms]
            for each in handle.poll(fields["ms"] / 1000)
        ]
    if do == "send":
        for name in ("key", "value"):
            fields[name] = decoded(fields[name])
        fields["headers"] = tuple((name, decoded(value)) for name, value in fields["headers"])
        return handle.send(fields.pop("topic"), Message(**fields)).result()
    found = getattr(handle, do)(**fields)
    return sorted(found) if isinstance(found, set) else found


def headers(each: Any) -> list[list[str | None]]:
    return [[name, coded(value)] for name, value in each.headers]


def coded(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def main(file: str, name: str) -> None:
    spec = importlib.util.spec_from_file_location("hosted", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    host = Host(getattr(module, name)())
    for line in sys.stdin.buffer:
        host.take(line)
    # Clients that were not closed must not keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
