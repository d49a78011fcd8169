"""The listeners: whether their ports are free, or a server answers there."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPException
from typing import Final

from rockgate.cli.doctor.finding import Finding, ok, problem, warning
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint

_BODY_BYTES_MAX: Final = 1000


def check(
    endpoints: Sequence[Endpoint], *, is_running: bool, timeout_s: float
) -> Iterator[Finding]:
    """All of them; `is_running` says that a server runs on the data directory."""
    for endpoint in endpoints:
        if not endpoint.address.is_closed:
            yield port(endpoint.label, endpoint.address, is_running=is_running)
    pages = [each for each in endpoints if each.protocol == "http" and not each.address.is_closed]
    if is_running and pages:
        yield readiness(pages[0], timeout_s)


def port(label: str, address: Address, *, is_running: bool) -> Finding:
    """Whether the address can be bound."""
    name = f"listener {label}"
    if address.port == 0:
        return ok(name, f"A free port of {address.host} is taken at the start.")
    try:
        family, kind, number, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        return problem(
            name,
            f"{address.host} is not an address: {error.strerror}.",
            "Use an address of this machine, or 0.0.0.0 for all of them.",
        )
    with closing(socket.socket(family, kind, number)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(target)
        except PermissionError:
            return problem(
                name,
                f"This user may not use port {address.port}.",
                "Use a port above 1023, or give the process CAP_NET_BIND_SERVICE.",
            )
        except OSError as error:
            if is_running:
                return ok(name, f"{address} is in use, and a server runs on the data directory.")
            return problem(
                name,
                f"{address} cannot be used: {error.strerror}.",
                "Stop the program that uses it, or give the listener another port.",
            )
    if is_running:
        return warning(
            name,
            f"{address} is free, but a server runs on the data directory.",
            "Give doctor the flags and the settings file that the server was started with.",
        )
    return ok(name, f"{address} is free.")


def readiness(endpoint: Endpoint, timeout_s: float) -> Finding:
    """What the running server says of itself."""
    address = endpoint.address
    host = "127.0.0.1" if address.is_wildcard else str(address).rpartition(":")[0]
    if endpoint.tls != "disabled":
        return ok("running server", "Its page /ready has TLS and was not asked.")
    url = f"http://{host}:{address.port}/ready"
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            body = answer.read(_BODY_BYTES_MAX)
    except urllib.error.HTTPError as error:
        with error:
            reason = error.read(_BODY_BYTES_MAX).decode("utf-8", "replace").strip()
        return problem("running server", f"It is not ready: {reason}.", "Read the server's log.")
    except (OSError, HTTPException) as error:
        return problem(
            "running server", f"{url} does not answer: {error}.", "Read the server's log."
        )
    return ok("running server", f"It says: {body.decode('utf-8', 'replace').strip()}.")
