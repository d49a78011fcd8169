"""Log lines: one per event on standard error, a short clause and then key=value.

    2026-11-16T06:07:01.123Z info kafka.door connection refused limit=10000

Only the server sets up logging; protocol never logs. Levels: error = somebody must act; warning = a
peer or the disk misbehaved; info = life of the process, and peers that were closed; debug = one
line per request.
"""

import logging
import sys
import time

VALUE_CHARS_MAX = 120
_ROOM_PREFIX = "rockgate.gateway."


class LineFormatter(logging.Formatter):
    """UTC time, level, the module below this room, the message; then a traceback, if any."""

    def __init__(self) -> None:
        super().__init__("%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its traceback."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        name = record.name.removeprefix(_ROOM_PREFIX)
        return f"{at}.{int(record.msecs):03d}Z {record.levelname.lower()} {name} {record.message}"


def set_up(level: str) -> None:
    """Send every log line of the process, libraries' too, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A broken standard error must not turn into an error of the request that logged.
    logging.raiseExceptions = False


def shown(value: str | None) -> str:
    """A peer's text as the value of a key: bounded, and quoted where it could pass for more."""
    if value is None:
        return "-"
    text = value if len(value) <= VALUE_CHARS_MAX else value[:VALUE_CHARS_MAX] + "…"
    is_plain = text.isprintable() and text and not any(c in " =\"'" for c in text)
    return text if is_plain else ascii(text)
