"""The check of a server's log, which the server runs itself."""

from __future__ import annotations

from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.bodies.admin import LogCheck
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.admin import CheckLogHeader


async def status(remoting: RemotingConnection) -> LogCheck:
    """How far the check is, or what the last one found."""
    return await _ask(remoting, "status")


async def start(remoting: RemotingConnection) -> LogCheck:
    """Start one, unless one runs."""
    return await _ask(remoting, "start")


async def stop(remoting: RemotingConnection) -> LogCheck:
    """Stop the one that runs."""
    return await _ask(remoting, "stop")


async def _ask(remoting: RemotingConnection, action: str) -> LogCheck:
    return await remoting.ask(RequestCode.CHECK_LOG, CheckLogHeader(action=action), LogCheck)
