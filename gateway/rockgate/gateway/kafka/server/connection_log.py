"""The log lines of a Kafka session: those of any connection, and of its requests."""

import logging

from rockgate.gateway.kafka.request.peer import Peer
from rockgate.gateway.net.connection_log import Lines
from rockgate.gateway.runtime.quoting import shown
from rockgate.protocol.kafka.connection import Exchange
from rockgate.protocol.kafka.keys import ApiKey

log = logging.getLogger("rockgate.gateway.kafka.server.session")
LINES = Lines(log, "the Kafka port")


def request(exchange: Exchange, peer: Peer) -> None:
    """A request came in."""
    header = exchange.header
    log.debug(
        "< %s api=%s version=%d correlation_id=%d client_id=%s size=%d",
        peer,
        ApiKey(header.api_key).name,
        header.api_version,
        header.correlation_id,
        shown(header.client_id),
        exchange.size,
    )


def answer(exchange: Exchange, peer: Peer, size: int) -> None:
    """Its answer is known."""
    header = exchange.header
    log.debug(
        "> %s api=%s version=%d correlation_id=%d size=%d",
        peer,
        ApiKey(header.api_key).name,
        header.api_version,
        header.correlation_id,
        size,
    )
