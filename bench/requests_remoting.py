"""The largest requests of RocketMQ's remoting and of the name server, for `bench.requests`.

A row is a code at its worst legal size; `frame` makes its bytes. Rows for the name server have the
door "namesrv", those for the broker "remoting".
"""

from collections.abc import Mapping

from bench.requests_world import Request
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command, encode


def frame(code: RequestCode, fields: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """A request as it goes over the wire."""
    return encode(Command(code=code, fields=dict(fields or {}), body=body))


REQUESTS: tuple[Request, ...] = (
    Request(
        name="21 GET_ALL_TOPIC_CONFIG",
        door="remoting",
        make=lambda _: [frame(RequestCode.GET_ALL_TOPIC_CONFIG)],
    ),
    Request(
        name="206 GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
        door="namesrv",
        make=lambda _: [frame(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)],
    ),
)
