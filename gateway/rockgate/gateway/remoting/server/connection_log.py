"""The log lines of a remoting session: those of any connection, and of its requests."""

import logging

from rockgate.gateway.net.connection_log import Lines
from rockgate.gateway.remoting.server.caller import Peer
from rockgate.protocol.remoting.codes import request_name
from rockgate.protocol.remoting.command import Command

log = logging.getLogger("rockgate.gateway.remoting.server.session")
LINES = Lines(log, "a RocketMQ port")


def request(command: Command, peer: Peer) -> None:
    """A request came in."""
    log.debug(
        "< %s code=%s opaque=%d size=%d",
        peer,
        request_name(command.code),
        command.opaque,
        command.size,
    )


def answer(command: Command, peer: Peer, size: int) -> None:
    """Its answer is known."""
    log.debug("> %s code=%s opaque=%d size=%d", peer, command.code, command.opaque, size)


def dropped(size: int, peer: Peer) -> None:
    """Answers came that nobody waits for, or nobody any more."""
    log.info("dropped answers that nobody waits for size=%d %s", size, peer)
