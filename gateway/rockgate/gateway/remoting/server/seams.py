"""The two ends that a session lies between: what answers its requests, and what keeps it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Frame
from rockgate.protocol.remoting.command import Command

if TYPE_CHECKING:
    from rockgate.gateway.remoting.server.session import Session


class Dispatch(Protocol):
    """What answers requests."""

    def dispatch(self, command: Command, caller: Caller, /) -> Frame | asyncio.Future[Frame]:
        """The answer's frame, or the promise of one."""


class Sessions(Protocol):
    """What keeps the sessions of a door."""

    def opened(self, session: Session, /) -> bool:
        """Keep a new session; False turns it away."""

    def lost(self, session: Session, /) -> None:
        """Forget a session whose connection is gone."""
