"""One reference-counted client for all users in a process that name the same servers.

A client belongs to a loop, so two loops have two. Clients of one loop are distinguished by the set
of addresses, the instance name, the credentials and TLS.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from rockgate.sdk.client.client import Client, addresses_of
from rockgate.sdk.credentials import Credentials, Tls

Key: TypeAlias = tuple[frozenset[str], str | None, Credentials | None, Tls | None]


@dataclass(slots=True)
class _SharedClient:
    """A client and how many use it."""

    client: Client
    user_count: int = 0


_lock: Final = threading.Lock()
_by_loop: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Key, _SharedClient]]] = (
    WeakKeyDictionary()
)


async def _acquire(
    name_servers: str | Sequence[str],
    instance: str | None = None,
    credentials: Credentials | None = None,
    tls: Tls | None = None,
) -> Client:
    """The client of this loop for these addresses, open; it is to be released."""
    addresses = addresses_of(name_servers)
    key = (frozenset(addresses), instance, credentials, tls or None)
    with _lock:
        # A loop that ended without closing what ran on it has left a client behind.
        for loop in [loop for loop in _by_loop if loop.is_closed()]:
            del _by_loop[loop]
        clients = _by_loop.setdefault(asyncio.get_running_loop(), {})
    # From here on this is the loop's own, and nothing waits before it is counted.
    shared = clients.get(key)
    if shared is None:
        shared = clients[key] = _SharedClient(
            Client(addresses, instance=instance, credentials=credentials, tls=tls)
        )
        shared.user_count = 1
        await shared.client.open()
    else:
        shared.user_count += 1
    return shared.client


def _release(client: Client) -> bool:
    """Remove one user; return whether it was the last, which must close the client."""
    with _lock:
        clients = _by_loop.get(asyncio.get_running_loop(), {})
    for key, shared in clients.items():
        if shared.client is client:
            shared.user_count -= 1
            if shared.user_count:
                return False
            del clients[key]
            return True
    raise AssertionError("the client is not shared, or was already released")


class Lease:
    """The client to use: one that was given, or the shared one."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
    ) -> None:
        if client is not None and name_servers:
            raise ValueError("Give name servers or a client, not both.")
        if client is not None and (credentials is not None or tls):
            raise ValueError("Set `credentials` and `tls` on the client, not on what shares it.")
        if client is None:
            addresses_of(name_servers)
        elif instance is not None:
            raise ValueError("Set `instance` on the client, not on what shares it.")
        self._name_servers = name_servers
        self._instance = instance
        self._given = client
        self._credentials = credentials
        self._tls = tls
        self._shared: Client | None = None

    async def open(self) -> Client:
        """The client, open; it is to be closed or aborted once."""
        if self._given is not None:
            return self._given
        self._shared = await _acquire(
            self._name_servers, self._instance, self._credentials, self._tls
        )
        return self._shared

    async def close(self) -> None:
        """Release a client: the last user that shares it closes it."""
        shared, self._shared = self._shared, None
        if shared is not None and _release(shared):
            await shared.close()

    def abort(self) -> None:
        """The same at once, without unregistering."""
        shared, self._shared = self._shared, None
        if shared is not None and _release(shared):
            shared.abort()
