"""Checks a data directory in a process of its own: `python -m rockgate.store.check DIRECTORY`.

A server runs it while it serves: reading a whole log is work for minutes, which must not share an
interpreter with the event loop. Each line of the output is JSON: `read` and `total` bytes during
the check, and `report` at the end. It ends when its output is closed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from rockgate.store.check.inspect import Report, check
from rockgate.store.files.interface import DiskDirectory

SAY_SECONDS: Final = 0.2
DAMAGE_MAX: Final = 100
NOTES_MAX: Final = 20
NICENESS: Final = 19
_encode: Final = msgspec.json.Encoder().encode


def main(folder: str) -> None:
    """Check it, and say how far the check is."""
    os.nice(NICENESS)
    total = sum(each.stat().st_size for each in Path(folder, "commitlog").glob("[0-9]*"))
    read = 0
    said_at = 0.0

    def advance(size: int) -> None:
        nonlocal read, said_at
        read += size
        now = time.monotonic()
        if now - said_at >= SAY_SECONDS:
            said_at = now
            _say({"read": read, "total": total})

    _say({"read": 0, "total": total})
    report = check(DiskDirectory(Path(folder)), advance)
    _say({"read": read, "total": total})
    _say({"report": _fields(report)})


def _fields(report: Report) -> dict[str, Any]:
    return {
        "log_start": report.log_start,
        "log_end": report.log_end,
        "segment_count": report.segment_count,
        "entry_count": report.entry_count,
        "batch_count": report.batch_count,
        "index_count": report.index_count,
        "key_file_count": report.key_file_count,
        "snapshot_count": report.snapshot_count,
        "damage_count": len(report.damage),
        "damage": [
            {"file": each.file, "position": each.position, "reason": each.reason}
            for each in report.damage[:DAMAGE_MAX]
        ],
        "notes": report.notes[:NOTES_MAX],
    }


def _say(fields: dict[str, Any]) -> None:
    sys.stdout.buffer.write(_encode(fields) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BrokenPipeError:
        # The server is gone. Nothing is left to be flushed to it.
        os._exit(1)
