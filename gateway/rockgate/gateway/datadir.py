"""The data directory's claim: one living server per directory.

The claim is an advisory lock on the file `lock`, so it ends with the process however that ends. The
file holds the owner's process id for the message that a second server prints; it is never removed,
because removing it would race with the next owner.
"""

import fcntl
import os
from pathlib import Path

from rockgate.gateway.errors import DirectoryInUse, StartError

LOCK_NAME = "lock"


class DataDirectory:
    """A directory that this process owns until it is released."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def claim(cls, path: Path) -> "DataDirectory":
        """Make the directory if need be and own it; StartError if that cannot be."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            path = path.resolve()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(path / LOCK_NAME, flags, 0o644)
        except OSError as error:
            raise StartError(f"cannot use data directory {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _owner(descriptor)
            os.close(descriptor)
            raise DirectoryInUse(directory=path, pid=pid) from None
        except OSError as error:
            os.close(descriptor)
            raise StartError(f"cannot lock data directory {path}: {error.strerror}") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        """Let the next server have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _owner(descriptor: int) -> int | None:
    """The process id the owner wrote; None in the moment before it has."""
    text = os.pread(descriptor, 20, 0).strip()
    return int(text) if text.isdigit() else None
