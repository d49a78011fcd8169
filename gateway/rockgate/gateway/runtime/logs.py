"""Log format: one line per event on standard error, a short message followed by key=value pairs.

    2026-11-16T06:07:01.123Z info kafka.listener connection refused limit=10000

An event is one line, whatever its values hold; a traceback below it is indented. Text from a peer
is also quoted (`rockgate.gateway.runtime.quoting.quoted`), so that it cannot be mistaken for
another key.

Only the server sets up logging; protocol never logs. Levels: error = an operator must act; warning
= a peer or the disk misbehaved; info = life of the process, and peers that were closed; debug = one
line per request.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rockgate.gateway.runtime.quoting import one_line
from rockgate.gateway.runtime.quoting import quoted as quoted

_ROOM_PREFIX = "rockgate.gateway."


class LineFormatter(logging.Formatter):
    """UTC time, level, the module below this package, the message; then a traceback, if any."""

    def __init__(self) -> None:
        super().__init__("%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its traceback."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        name = record.name.removeprefix(_ROOM_PREFIX)
        message = one_line(record.message)
        return f"{at}.{int(record.msecs):03d}Z {record.levelname.lower()} {name} {message}"

    def formatException(self, ei: Any) -> str:
        """An indented traceback, so that no line of it can be mistaken for a log line."""
        return _set_in(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        """An indented stack."""
        return _set_in(super().formatStack(stack_info))


def _set_in(text: str) -> str:
    return "\n".join(f"  {one_line(line)}" for line in text.split("\n"))


def set_up(level: str) -> None:
    """Send every log line of the process, libraries' too, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A broken standard error must not turn into an error of the request that logged.
    logging.raiseExceptions = False


@contextmanager
def to_stderr(level: str) -> Iterator[None]:
    """Send the gateway's and the store's log lines to standard error, for a short command."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    parent = logging.getLogger("rockgate")
    before = parent.level
    parent.addHandler(handler)
    parent.setLevel(level.upper())
    try:
        yield
    finally:
        parent.removeHandler(handler)
        parent.setLevel(before)
