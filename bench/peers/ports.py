"""Free ports of the loopback interface.

A free port may be taken before the peer binds it. That is rare, and results in a peer that does not
become ready; ports come from the system's ephemeral range, so that two benchmarks on one machine do
not choose the same ones.
"""

import socket
from collections.abc import Sequence
from contextlib import ExitStack

from bench.peers.errors import PeerError

HOST = "127.0.0.1"
TRIES_MAX = 100


def free_ports(count: int) -> list[int]:
    """Return this many different free ports."""
    with ExitStack() as held:
        return [_bound(held, 0) for _ in range(count)]


def free_port_with(steps: Sequence[int]) -> int:
    """Return a port that is free together with those at `steps` from it."""
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
