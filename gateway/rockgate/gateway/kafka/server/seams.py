"""The two ends that a session lies between: what answers its requests, and what keeps it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from rockgate.gateway.kafka.request.handler import Answer
from rockgate.gateway.kafka.request.peer import Peer
from rockgate.protocol.kafka.connection import Exchange

if TYPE_CHECKING:
    from rockgate.gateway.kafka.server.session import Session


class Promise(Protocol):
    """An answer that is not there yet."""

    @property
    def future(self) -> asyncio.Future[Any]:
        """Tells when it is there."""
        ...

    def answer(self) -> Answer:
        """The answer, once `future` is done; raises what closes the connection."""
        ...


class Dispatch(Protocol):
    """What answers requests."""

    def dispatch(self, exchange: Exchange, peer: Peer, /) -> Answer | Promise:
        """The answer, or the promise of one."""
        ...


class Sessions(Protocol):
    """What keeps the sessions of a door."""

    def opened(self, session: Session, /) -> bool:
        """Keep a new session; False turns it away."""
        ...

    def lost(self, session: Session, /) -> None:
        """Forget a session whose connection is gone."""
        ...
