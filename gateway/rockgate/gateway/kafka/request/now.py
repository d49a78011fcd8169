"""A value now, or a promise of one: what a deployment answers handlers with.

Over the store in this process nearly everything is known at once, and an answer that is there
costs no future and no task. Over other servers it has to be asked for. So a handler takes either,
and goes on at once if it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol, TypeAlias, TypeVar

A = TypeVar("A")

Now: TypeAlias = A | Awaitable[A]


class Durable(Protocol):
    """Holds an answer back until the changes before it are as safe as they are promised to be."""

    def after_changes(self, answer: A, /) -> A | asyncio.Future[A]:
        """The answer, or a future of it if it must wait."""
        ...
