"""Large responses: built in slices on the event loop, and bounded.

Rows are encoded one by one, so that neither making nor writing them blocks the loop; their source
must tolerate changes meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.codes import ResponseCode

TURN_SECONDS: Final = 0.005
BODY_BYTES_MAX: Final = 15 << 20
"""Maximum size of a response: RocketMQ's clients accept frames of 16 MiB."""


async def joined(before: bytes, rows: Iterable[bytes], behind: bytes, *, instead: str) -> bytes:
    """A body of rows with commas between; SYSTEM_ERROR, with an alternative, if it is too large."""
    parts = [before]
    size = len(before) + len(behind)
    share = TimeSlice(TURN_SECONDS)
    for row in rows:
        if len(parts) > 1:
            parts.append(b",")
        parts.append(row)
        size += len(row) + 1
        if size > BODY_BYTES_MAX:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"Response would exceed {BODY_BYTES_MAX:,} bytes; {instead}.",
            )
        if share.is_over():
            await asyncio.sleep(0)
            share = TimeSlice(TURN_SECONDS)
    parts.append(behind)
    # Joining them is the largest step.
    await asyncio.sleep(0)
    return b"".join(parts)


def keyed(key: object, value: object) -> bytes:
    """A row of a map: `"name":{…}`, or Java's `{…}:{…}`."""
    return javajson.encode(key) + b":" + javajson.encode(value)
