"""Whether a client knows a user's password. Hashing one takes milliseconds: threads do it.

A user who does not exist, or is disabled, costs as much as one with a wrong password, and gets a
salt that is derived from the name and never changes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from rockgate.gateway.security.credentials.secret_key import SecretKey
from rockgate.gateway.security.users import StoredUsers
from rockgate.protocol.sasl.scram import (
    ITERATIONS_MIN,
    SALT_SIZE,
    ScramCredential,
    ScramMechanism,
    credential_of,
    is_password,
    salted_password,
    unknown_credential,
)

T = TypeVar("T")


class PasswordThreads:
    """Hashes passwords outside the loop, as many at a time as there are threads."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="passwords")

    def close(self) -> None:
        """Wait for no one: what is being hashed is dropped."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run it in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


class Logins:
    """Checks what clients log in with."""

    def __init__(
        self,
        *,
        users: StoredUsers,
        threads: PasswordThreads,
        key: SecretKey,
        iterations: int = ITERATIONS_MIN,
    ) -> None:
        self._users = users
        self._threads = threads
        self._key = key
        self._decoy_secret = key.derived("users who do not exist")
        self._iterations = iterations

    def credential(self, name: str, mechanism: ScramMechanism) -> ScramCredential:
        """The credential of a SCRAM exchange; one that no password fits if there is none."""
        found = self._users.credential(name, mechanism)
        if found is None:
            return unknown_credential(mechanism, self._decoy_secret, name, self._iterations)
        return found

    async def check_password(self, name: str, password: str) -> bool:
        """Whether it is the password of a user who can log in."""
        for mechanism in ScramMechanism:
            if self._users.credential(name, mechanism) is not None:
                break
        else:
            mechanism = ScramMechanism.SHA_256
        credential = self.credential(name, mechanism)
        is_right = await self._threads.run(
            partial(is_password, mechanism, credential, password.encode())
        )
        # The user may have been removed, or have another password, since.
        return is_right and self._users.credential(name, mechanism) == credential

    def may_log_in(self, name: str) -> bool:
        """Whether there is such a user, who is enabled."""
        return self._users.is_enabled(name)

    def secret(self, name: str) -> str | None:
        """What a user signs requests with; None if there is none, or the user is disabled."""
        user = self._users.find(name)
        if user is None or not user.is_enabled or not user.sealed:
            return None
        return self._key.open(name, user.sealed)

    def sealed(self, name: str, secret: str) -> bytes:
        """What is stored of a user's secret; SecretUnavailable if it is too long or empty."""
        return self._key.seal(name, secret)

    async def hashed(self, password: str) -> Mapping[str, ScramCredential]:
        """What is stored of a password: a credential for each mechanism."""
        return await self._threads.run(partial(scram_of, password, self._iterations))


def scram_of(password: str, iterations: int) -> Mapping[str, ScramCredential]:
    """What is stored of a password; slow."""
    made = {}
    for mechanism in ScramMechanism:
        salt = secrets.token_bytes(SALT_SIZE)
        salted = salted_password(mechanism, password.encode(), salt, iterations)
        made[mechanism.sasl_name] = credential_of(mechanism, salted, salt, iterations)
    return made
