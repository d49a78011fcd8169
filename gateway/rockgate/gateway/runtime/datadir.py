"""Checks the data directory before the store opens it.

The store takes the directory's lock when it opens, which comes after the listeners are bound. This
check comes first, so that a second server on the defaults fails with an error about the directory
and not about the port that the first one holds.
"""

import fcntl
import os
from pathlib import Path

from rockgate.gateway.runtime.errors import DirectoryInUse, StartError

LOCK_NAME = "lock"


def refuse_if_in_use(path: Path) -> None:
    """DirectoryInUse if a running server has the directory; that one may stop at any moment."""
    try:
        descriptor = os.open(path / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"Cannot use data directory {path}: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 20, 0).strip()
        pid = int(owner) if owner.isdigit() else None
        raise DirectoryInUse(directory=path.resolve(), pid=pid) from None
    finally:
        os.close(descriptor)
