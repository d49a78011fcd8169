"""Cut the connections of a gateway to a broker: both systems drop every packet, and nothing closes.

A socket filter that accepts nothing is attached to both ends, which are fetched from their
processes (pidfd_getfd, Linux 5.6). New connections are not affected, as with a firewall that has
lost the state of old ones. What was sent meanwhile arrives after the end of the cut, if the sender
still wants to send it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

ATTACH_FILTER, DETACH_FILTER = 26, 27
PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


class CannotCut(Exception):
    """The system does not let one process have a socket of another."""


@contextmanager
def cut(pid: int, broker_pid: int, broker_port: int) -> Iterator[int]:
    """Drop all packets between a process and a broker meanwhile; the number of connections."""
    with ExitStack() as held:
        ours = [each for each in sockets_of(pid, held) if _port(each.getpeername) == broker_port]
        ports = {_port(each.getsockname) for each in ours}
        theirs = [
            each
            for each in sockets_of(broker_pid, held)
            if _port(each.getpeername) in ports and _port(each.getsockname) == broker_port
        ]
        for each in (*ours, *theirs):
            _drop_all(each)
            held.callback(each.setsockopt, socket.SOL_SOCKET, DETACH_FILTER, 0)
        yield len(ours)


def sockets_of(pid: int, held: ExitStack) -> Iterator[socket.socket]:
    """The connected sockets of a process."""
    process = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                link = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if not link.startswith("socket:"):
                continue
            number = _libc.syscall(PIDFD_GETFD, process, int(name), 0)
            if number < 0:
                raise CannotCut(os.strerror(ctypes.get_errno()))
            found = held.enter_context(socket.socket(fileno=number))
            if found.family in (socket.AF_INET, socket.AF_INET6) and _port(found.getpeername):
                yield found
    finally:
        os.close(process)


def _drop_all(each: socket.socket) -> None:
    accept_nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    program = struct.pack("HL", 1, ctypes.addressof(accept_nothing))
    each.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)


def _port(name: object) -> int:
    assert callable(name)
    try:
        port: int = name()[1]
    except OSError:
        return 0
    return port
