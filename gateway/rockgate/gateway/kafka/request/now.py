"""A value now, or an awaitable of one: what a deployment returns to handlers.

Over the store in this process nearly everything is known at once, and an immediate answer costs no
future and no task. Over other servers it has to be requested. So a handler takes either, and
continues at once if it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol, TypeAlias, TypeVar

A = TypeVar("A")

Now: TypeAlias = A | Awaitable[A]


class Durable(Protocol):
    """Delays a response until the changes before it are as durable as promised."""

    def after_changes(self, answer: A, /) -> A | asyncio.Future[A]:
        """The response, or a future of it if it must wait."""
        ...
