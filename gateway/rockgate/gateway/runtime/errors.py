"""Errors that prevent the gateway from starting or continuing.

    GatewayError
    ├── ConfigError           settings that are unknown, malformed or contradict each other
    └── StartError            the surroundings are not as the server needs them
        ├── BindError         an address cannot be listened on
        ├── DirectoryInUse    another server holds the data directory
        └── IdentityError     the directory's identity is unreadable, or belongs to another node

A ConfigError ends the command with status 2, a StartError with status 1. Errors of a single request
never appear here.
"""

from collections.abc import Sequence
from pathlib import Path


class GatewayError(Exception):
    """Root of the gateway's own errors."""


class ConfigError(GatewayError):
    """Settings that cannot be used; `problems` holds a sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = tuple(problems)


class StartError(GatewayError):
    """The server cannot start in this environment."""


class BindError(StartError):
    """An address that cannot be listened on."""

    def __init__(self, *, listener: str, address: str, reason: str, advice: str) -> None:
        super().__init__(f"Cannot listen on {address} for {listener}: {reason}. {advice}")
        self.listener = listener
        self.address = address


class DirectoryInUse(StartError):
    """Another live server holds the data directory."""

    def __init__(self, *, directory: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(
            f"Data directory {directory} is in use by {holder}. Stop that server, or set "
            "another --data-dir."
        )
        self.directory = directory
        self.pid = pid


class IdentityError(StartError):
    """The data directory's identity cannot be used by this server."""

    def __init__(self, *, path: Path, reason: str) -> None:
        super().__init__(f"Cannot use {path}: {reason}.")
        self.path = path
