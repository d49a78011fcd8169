"""The id of a data directory: 16 random bytes, made with it.

Replication counts directories, not hosts: a wiped disk comes back as a stranger
(docs/internals/replication.md). The file `directory` has the id in hex. A copy of a directory that
is to live beside the original must not have it: without the file a start makes a new id.
"""

from __future__ import annotations

import logging
import secrets
from typing import Final

from rockgate.store.files.interface import Directory, replace_file

log = logging.getLogger(__name__)

NAME: Final = "directory"
SIZE: Final = 16
UNKNOWN: Final = bytes(SIZE)
"""The directory of an epoch that was begun before directories had an id."""


def directory_id(directory: Directory) -> bytes:
    """Return the id, made durable now if there is none; StoreFull without space for it."""
    found = _read(directory)
    if found is None:
        found = secrets.token_bytes(SIZE)
        replace_file(directory, NAME, found.hex().encode() + b"\n")
    return found


def _read(directory: Directory) -> bytes | None:
    if NAME not in directory.names():
        return None
    file = directory.open(NAME)
    try:
        text = file.read(0, 2 * SIZE + 2)
    finally:
        file.close()
    try:
        found = bytes.fromhex(text.decode("ascii").removesuffix("\n"))
    except ValueError:
        found = b""
    if len(found) == SIZE and found != UNKNOWN:
        return found
    # A stranger is safe: it is in no set, and gets everything from the primary.
    log.warning("directory id is damaged and replaced file=%s/%s", directory.path, NAME)
    return None
