"""Notifies members that their group has changed (40), a few in each turn of the event loop.

A group of thousands changes with every member that joins, and one connection may be in a thousand
groups. A group that changes again before its turn is notified once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.protocol.remoting.codes import RequestCode

TURN_SECONDS: Final = 0.005

Soon = Callable[[Callable[[], None]], object]
"""Runs something in the next turn of the event loop."""


def at_once(work: Callable[[], None]) -> None:
    """Run it immediately: for callers without a loop."""
    work()


class Notices:
    """Groups whose members have yet to be notified."""

    def __init__(self, members: Callable[[str], list[Caller]], soon: Soon = at_once) -> None:
        """Notify `members`, the connections of a group at the time; `soon` runs the next turn."""
        self._members = members
        self._names: dict[str, None] = {}
        self._notifying: Iterator[tuple[str, Caller]] = iter(())
        self._is_scheduled = False
        self._soon = soon

    def add(self, group: str) -> None:
        """Notify the members of a group in a later turn."""
        self._names[group] = None
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._soon(self._step)

    def _step(self) -> None:
        self._is_scheduled = False
        share = TimeSlice(TURN_SECONDS)
        while True:
            for group, caller in self._notifying:
                if caller.is_open:
                    fields = {"consumerGroup": group}
                    caller.send_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields)
                if share.is_over():
                    self._schedule()
                    return
            if not self._names:
                return
            name = next(iter(self._names))
            del self._names[name]
            self._notifying = iter([(name, caller) for caller in self._members(name)])
