"""The identity of a server, stored in its data directory: node id and cluster id.

Clients remember both, so a restart must not change them. `identity.json` has them; it is written
to a temporary file, synced and renamed. The cluster id has Kafka's form: 16 random bytes as 22
characters of URL-safe base64.
"""

import base64
import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from rockgate.gateway.runtime.errors import IdentityError

FILE_NAME = "identity.json"
FILE_BYTES_MAX = 4096
FORMAT = 1
NODE_ID_DEFAULT = 1
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What identifies this server to clients."""

    node_id: int
    cluster_id: str


def identify(directory: Path, node_id: int | None, cluster_id: str = "") -> Identity:
    """The directory's identity, created if it has none; `node_id` is the configured one.

    `cluster_id` is that of the cluster a new directory joins; without one it makes its own.
    """
    path = directory / FILE_NAME
    stored = _read(path)
    if stored is None:
        made = Identity(
            node_id=NODE_ID_DEFAULT if node_id is None else node_id,
            cluster_id=cluster_id or _new_cluster_id(),
        )
        _write(path, made)
        return made
    _require_same(path, stored, node_id)
    return stored


def look(directory: Path, node_id: int | None) -> None:
    """IdentityError if `identify` would raise it; nothing is created."""
    path = directory / FILE_NAME
    stored = _read(path)
    if stored is not None:
        _require_same(path, stored, node_id)


def _require_same(path: Path, stored: Identity, node_id: int | None) -> None:
    if node_id is not None and node_id != stored.node_id:
        raise IdentityError(
            path=path,
            reason=f"node id is {stored.node_id}, but server.node_id is {node_id}; use the same "
            "id or another data directory",
        )


def _new_cluster_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # An id that starts with a dash is read as a flag by command-line tools.
        if not text.startswith("-"):
            return text


def _read(path: Path) -> Identity | None:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IdentityError(path=path, reason=error.strerror or "unreadable") from error
    try:
        stored = json.loads(data)
        node_id, cluster_id, format_ = stored["node_id"], stored["cluster_id"], stored["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise IdentityError(path=path, reason="not an identity file") from error
    if format_ != FORMAT:
        raise IdentityError(path=path, reason=f"unknown format {format_!r}")
    is_node_id = type(node_id) is int and 0 <= node_id < 2**31
    if not is_node_id or not (isinstance(cluster_id, str) and _CLUSTER_ID.fullmatch(cluster_id)):
        raise IdentityError(path=path, reason="not an identity file")
    return Identity(node_id=node_id, cluster_id=cluster_id)


def _write(path: Path, identity: Identity) -> None:
    aside = path.with_suffix(".new")
    text = json.dumps(
        {"format": FORMAT, "node_id": identity.node_id, "cluster_id": identity.cluster_id}
    )
    try:
        with aside.open("w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise IdentityError(path=path, reason=error.strerror or "unwritable") from error
