"""Free ports of the loopback interface.

A port that was free a moment ago may be taken before the peer binds it. That is rare, and shows as
a peer that does not come up; the ranges that the system itself hands out are asked, so that two
benchmarks on one machine do not pick the same ones.
"""

import socket
from collections.abc import Sequence
from contextlib import ExitStack

from bench.peers.errors import PeerError

HOST = "127.0.0.1"
TRIES_MAX = 100


def free_ports(count: int) -> list[int]:
    """As many different ports as asked for."""
    with ExitStack() as held:
        return [_bound(held, 0) for _ in range(count)]


def free_port_with(steps: Sequence[int]) -> int:
    """A port that is free together with those that lie `steps` away from it."""
    for _ in range(TRIES_MAX):
        with ExitStack() as held:
            port = _bound(held, 0)
            try:
                for step in steps:
                    _bound(held, port + step)
            except (OSError, OverflowError):
                continue
            return port
    raise PeerError(f"no free port with {steps} beside it in {TRIES_MAX} tries")


def _bound(held: ExitStack, port: int) -> int:
    each = held.enter_context(socket.socket())
    each.bind((HOST, port))
    name: tuple[str, int] = each.getsockname()
    return name[1]
