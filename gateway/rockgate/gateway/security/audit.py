"""The audit: one line for each authentication, refusal and administrative change.

    security.audit refused principal=User:alice host=10.0.0.7 api=PRODUCE operation=WRITE
        resource=TOPIC:orders

A line says who, from where, what and the outcome, and never a secret. Each kind of line has a limit
per second; what exceeds it is counted, and the next line that is written says how many were not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Final, Protocol

from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.security.principal import Principal

LINES_MAX: Final = 200
log = logging.getLogger(__name__)
# Whatever the level of other lines is: an audit with holes is none.
log.setLevel(logging.INFO)


class AuditEvent(Enum):
    """The kinds of lines; the value begins the line."""

    AUTHENTICATED = "authenticated"
    REJECTED = "rejected"
    """An authentication that failed."""
    REFUSED = "refused"
    """A request without a grant for it."""
    CHANGED = "changed"
    """An administrative change; `outcome` is the error, or ok."""


class ChangeAudit(Protocol):
    """Where administrative changes are written down."""

    def changed(
        self, principal: Principal, host: str, /, *, api: str, what: str, outcome: str = "ok"
    ) -> None:
        """Something was changed, or could not be."""


class Audit:
    """Writes the lines; one for all listeners."""

    def __init__(self, lines_max: int = LINES_MAX, now: Callable[[], float] = monotonic) -> None:
        """`lines_max` is for each kind, per second."""
        self._lines_max = lines_max
        self._now = now
        self._windows = {event: _Window() for event in AuditEvent}

    @property
    def dropped(self) -> dict[str, int]:
        """How many lines of each kind were not written since the start."""
        return {event.value: window.dropped for event, window in self._windows.items()}

    def authenticated(
        self, principal: Principal, host: str, *, mechanism: str, listener: str
    ) -> None:
        """A client has proven who it is."""
        self._write(
            AuditEvent.AUTHENTICATED, principal, host, mechanism=mechanism, listener=listener
        )

    def rejected(
        self, principal: Principal, host: str, *, mechanism: str, listener: str, reason: str
    ) -> None:
        """A client has not proven to be the principal that it claims to be."""
        self._write(
            AuditEvent.REJECTED,
            principal,
            host,
            mechanism=mechanism,
            listener=listener,
            reason=reason,
        )

    def refused(
        self, principal: Principal, host: str, *, api: str, operation: str, resource: str
    ) -> None:
        """A request was refused; `resource` is its type and name, such as TOPIC:orders."""
        self._write(
            AuditEvent.REFUSED, principal, host, api=api, operation=operation, resource=resource
        )

    def changed(
        self, principal: Principal, host: str, *, api: str, what: str, outcome: str = "ok"
    ) -> None:
        """Something was changed by an administrator, or could not be: then outcome says why."""
        self._write(AuditEvent.CHANGED, principal, host, api=api, what=what, outcome=outcome)

    def _write(self, event: AuditEvent, principal: Principal, host: str, **values: str) -> None:
        window = self._windows[event]
        if not window.takes(self._now(), self._lines_max):
            return
        parts = [f"principal={quoted(str(principal))}", f"host={quoted(host)}"]
        parts += [f"{name}={quoted(value)}" for name, value in values.items()]
        if window.unreported:
            parts.append(f"dropped={window.unreported}")
            window.unreported = 0
        log.info("%s %s", event.value, " ".join(parts))


class _Window:
    """The lines of one kind in the current second."""

    __slots__ = ("dropped", "second", "unreported", "written")

    def __init__(self) -> None:
        self.second = -1
        self.written = 0
        self.unreported = 0
        self.dropped = 0

    def takes(self, now: float, lines_max: int) -> bool:
        """Count a line; False if it is one too many."""
        if int(now) != self.second:
            self.second, self.written = int(now), 0
        if self.written >= lines_max:
            self.unreported += 1
            self.dropped += 1
            return False
        self.written += 1
        return True
