"""The name server's settings by RocketMQ's names: listed (319), and some changed at run time (318).

A name server alone has no log. So what was changed is stored with the keys and values, in a
namespace of its own, and is effective once it is on disk. A change is all or nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer

SPACE: Final = "rockgate_namesrv_config"
BODY_BYTES_MAX: Final = 64 << 10
NAME_CHARS_MAX: Final = 60
LIST_TOPICS: Final = "enableAllTopicList"
LIST_TOPICS_OF_CLUSTER: Final = "enableTopicList"
ORDER_TOPICS: Final = "orderMessageEnable"
CHANGEABLE: Final = {LIST_TOPICS: True, LIST_TOPICS_OF_CLUSTER: True, ORDER_TOPICS: False}
"""What can be changed, with RocketMQ's defaults."""
_FIXED: Final = {"rocketmqHome": ""}
"""mqadmin expects some."""
_SWITCHES: Final = {"false": False, "true": True}


class RuntimeSettings:
    """Shows the settings, and changes those that can be."""

    def __init__(self, kv: KeyValues) -> None:
        self._kv = kv

    def is_on(self, name: str) -> bool:
        """Whether a setting is on."""
        return _SWITCHES.get(self._kv.get(SPACE, name) or "", CHANGEABLE[name])

    def current(self) -> dict[str, str]:
        """Return all settings by name."""
        return {**_FIXED, **{name: str(self.is_on(name)).lower() for name in CHANGEABLE}}

    async def change(self, body: Buffer) -> None:
        """Change settings, given as Java's properties; refuse all of them for one that cannot be.

        Those that have the value already remain unchanged, so that an answer to 319 can be sent.
        """
        if len(body) > BODY_BYTES_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"Settings are {len(body):,} bytes; the maximum is {BODY_BYTES_MAX:,}.",
            )
        known = self.current()
        changes: dict[str, bool] = {}
        for line in bytes(body).decode("utf-8", "replace").splitlines():
            name, _, text = (part.strip() for part in line.partition("="))
            if name and known.get(name) != text:
                changes[name] = _read(name, text)
        # Queued in one turn of the event loop, they are written together.
        await asyncio.gather(*(self._set(name, value) for name, value in changes.items()))

    def _set(self, name: str, value: bool) -> asyncio.Future[None]:
        if value == CHANGEABLE[name]:
            return self._kv.delete(SPACE, name)
        return self._kv.put(SPACE, name, str(value).lower())


def _read(name: str, text: str) -> bool:
    """Return a value that can be set; Refused says what is wrong."""
    if name not in CHANGEABLE:
        raise Refused(
            ResponseCode.NO_PERMISSION,
            f"{name[:NAME_CHARS_MAX]} cannot be changed at run time; those that can are "
            f"{', '.join(sorted(CHANGEABLE))}.",
        )
    if text not in _SWITCHES:
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"{name} must be true or false, not {text[:NAME_CHARS_MAX]!r}.",
        )
    return _SWITCHES[text]
