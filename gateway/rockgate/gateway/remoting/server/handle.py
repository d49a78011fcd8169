"""What a processor takes and returns: a command in, a reply out, at once or later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.protocol.remoting.command import Buffer, Command

Frame: TypeAlias = list[Buffer]
Reply: TypeAlias = Command | Frame
"""A command that is still to be written, or the frame of a hand codec."""
Later: TypeAlias = Awaitable[Reply] | Awaitable["Reply | asyncio.Future[Reply]"]
"""A reply to come. A long poll may return another future, if it has to wait once more."""
Handle: TypeAlias = Callable[[Command, Caller], Reply | Later]
