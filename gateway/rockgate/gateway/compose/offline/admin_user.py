"""Puts an administrator into the log before a server serves anything, or after all were lost.

The store is opened as the server opens it, with the folds of everything, so that the next start
finds what a stop would have left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.folds import ServerFolds
from rockgate.gateway.compose.security import secret_key_of
from rockgate.gateway.compose.storage import new_store
from rockgate.gateway.runtime.datadir import refuse_if_in_use
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.errors import SecurityError
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.users import StoredUsers, User, UserStatus, UserType
from rockgate.gateway.transcode.keys import RecordKeys
from rockgate.store.errors import StoreError
from rockgate.store.log.commitlog import NO_HOST
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics

API: Final = "BOOTSTRAP"
HOST: Final = "local"
"""Where the change comes from: no listener."""


class ClosedServer:
    """The users of a data directory, while this process has it open."""

    def __init__(self, config: Config, users: StoredUsers, operator: str) -> None:
        """`operator` is the user of this machine, for the audit."""
        self._config = config
        self._users = users
        self._operator = Principal("OS", operator)

    def __contains__(self, name: str) -> bool:
        return name in self._users

    def put_admin(self, name: str, password: str, *, can_sign: bool) -> None:
        """Create a user that may do everything, or make it one, with this password.

        With `can_sign` the password is the secret of RocketMQ's signatures, too.
        """
        security = self._config.security
        try:
            key = secret_key_of(security, self._config.server.data_dir.absolute())
            known = self._users.find(name) or User()
            user = known._replace(
                type=UserType.SUPER,
                status=UserStatus.ENABLED,
                scram=scram_of(password, security.scram_iterations),
                sealed=key.seal(name, password) if can_sign else b"",
            )
            self._users.put({name: user})
        except SecurityError as error:
            raise StartError(str(error)) from error
        Audit(security.audit_lines_max).changed(self._operator, HOST, api=API, what=f"USER:{name}")


@contextmanager
def closed_server(config: Config, operator: str) -> Iterator[ClosedServer]:
    """Open the data directory; StartError says why that cannot be done, or what was not saved."""
    path: Path = config.server.data_dir.absolute()
    refuse_if_in_use(path)
    threads = BatchThreads(config.batches)
    made: list[ServerFolds] = []

    def folds(journal: Journal, topics: Topics) -> list[Fold]:
        made.append(ServerFolds.make(journal, topics))
        return made[0].all()

    try:
        store = new_store(path, config.store, folds, RecordKeys(threads), NO_HOST)
        try:
            yield ClosedServer(config, made[0].security.users, operator)
        except StoreError as error:
            raise StartError(f"Nothing was changed: {error}") from error
        finally:
            store.close()
    finally:
        threads.close()
