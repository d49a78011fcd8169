"""Settings that RocketMQ's tools read and try to change; they are fixed at run time."""

from __future__ import annotations

from collections.abc import Mapping

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer


def lines_of(settings: Mapping[str, str]) -> bytes:
    """Return settings as Java's properties: one a line."""
    return "".join(f"{name}={value}\n" for name, value in settings.items()).encode()


def refuse_changes(body: Buffer, settings: Mapping[str, str]) -> None:
    """Refuse settings that are not as they are already."""
    for line in bytes(body).decode("utf-8", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        if name and settings.get(name) != value:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"{name[:60]} cannot be changed at run time; set it in the configuration "
                "file, the environment or the command line and restart the server (see "
                "`rockgate config`).",
            )
