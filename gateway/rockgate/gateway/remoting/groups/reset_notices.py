"""Sends members the offsets that their group was reset to (220), a few in each turn of the loop.

This is how RocketMQ 4 resets consumers, and RocketMQ 5 when `useServerSideResetOffset` is off: a
member drops the queues and starts at the new offsets, without having to pull first. The offsets are
committed before. A member that does not know the request continues where it is, and commits that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rockgate.gateway.remoting.groups.clients import Client, Clients
from rockgate.gateway.remoting.groups.notifications import Soon, at_once
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Fields

TURN_SECONDS: Final = 0.005
BYTES_MAX: Final = 64 << 20
"""What the members of a group may be sent; a larger reset is left to their pulls."""


class ResetNotices:
    """Resets that members have yet to be sent."""

    def __init__(self, clients: Clients, *, is_enabled: bool, soon: Soon = at_once) -> None:
        """Nothing is sent unless `is_enabled`; `soon` runs the next turn."""
        self.is_enabled = is_enabled
        self._clients = clients
        self._soon = soon

    def prepare(self, group: str, fields: Fields, rows: list[bytes]) -> Callable[[], None] | None:
        """Return what sends the offsets, a `queue:offset` in each row; None if it is not sent."""
        found = self._clients.consumer_group(group)
        if not self.is_enabled or found is None:
            return None
        members = list(found.members.values())
        if sum(map(len, rows)) * len(members) > BYTES_MAX:
            return None
        return lambda: self._step(_sending(members, fields, rows))

    def _step(self, sending: Iterator[None]) -> None:
        share = TimeSlice(TURN_SECONDS)
        for _ in sending:
            if share.is_over():
                self._soon(lambda: self._step(sending))
                return


def _sending(members: list[Client], fields: Fields, rows: list[bytes]) -> Iterator[None]:
    """Send the offsets to one member at each step."""
    code, as_map, as_list = RequestCode.RESET_CONSUMER_CLIENT_OFFSET, b"", b""
    for member in members:
        if member.language == "CPP":
            # Apache's C++ client reads a list.
            as_list = as_list or b'{"offsetTable":[%b]}' % b",".join(map(_flat, rows))
            member.caller.send_oneway(code, dict(fields), as_list)
        else:
            as_map = as_map or b'{"offsetTable":{%b}}' % b",".join(rows)
            member.caller.send_oneway(code, dict(fields), as_map)
        yield


def _flat(row: bytes) -> bytes:
    """Return a row with its offset among the fields of its queue."""
    queue, _, offset = row.rpartition(b":")
    return b'%b,"offset":%b}' % (queue[:-1], offset)
