"""The data directory: whether it can be used, what is on it, and on what kind of disk it lies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rockgate.cli.doctor.finding import Finding, ok, problem, warning
from rockgate.cli.text.values import size_text
from rockgate.gateway.runtime.datadir import refuse_if_in_use
from rockgate.gateway.runtime.errors import DirectoryInUse, StartError
from rockgate.store.config import StoreConfig

_MEMORY_FILESYSTEMS: Final = frozenset({"tmpfs", "ramfs"})
_NETWORK_FILESYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs"})
_SEGMENTS_AHEAD: Final = 2
"""A server writes one segment and reserves the next."""


def check(
    path: Path, config: StoreConfig, mounts: Path = Path("/proc/self/mountinfo")
) -> Iterator[Finding]:
    """All of it; a directory that cannot be used ends the list."""
    place = path
    if path.exists():
        yield (usable := _existing(path))
    else:
        place = _nearest(path)
        yield (usable := _missing(path, place))
    if not usable.remedy:
        yield space(place, config)
        yield filesystem(_kind(place.resolve(), mounts), path)


def has_server(path: Path) -> bool:
    """Whether a running server has the directory."""
    try:
        refuse_if_in_use(path)
    except DirectoryInUse:
        return True
    except StartError:
        pass
    return False


def space(place: Path, config: StoreConfig) -> Finding:
    """A server starts with less, but refuses what is written."""
    usage = shutil.disk_usage(place)
    used = 100 * (usage.total - usage.free) / usage.total
    free = size_text(usage.free)
    if used >= config.disk_used_percent_max:
        return problem(
            "disk space",
            f"{used:.0f} % of the disk are in use: writes are rejected from"
            f" {config.disk_used_percent_max} % on.",
            "Free some space, or raise store.disk_used_percent_max.",
        )
    wanted = _SEGMENTS_AHEAD * config.segment_bytes
    if usage.free < wanted:
        return problem(
            "disk space",
            f"{free} are free, and a new segment of the log is reserved as a whole.",
            f"Free {size_text(wanted)}, or use a smaller store.segment_bytes for a new directory.",
        )
    return ok("disk space", f"{free} are free.")


def filesystem(kind: str, path: Path) -> Finding:
    """Whether what is flushed is still there after a power cut."""
    if kind in _MEMORY_FILESYSTEMS:
        return warning(
            "file system",
            f"{path} is in memory ({kind}).",
            "Use a directory on a disk: everything here is lost when the machine restarts.",
        )
    if kind in _NETWORK_FILESYSTEMS:
        return warning(
            "file system",
            f"{path} is on a network file system ({kind}).",
            "Use a local disk: mapped files over a network can end the server when it is away.",
        )
    return ok("file system", f"It is {kind}." if kind else "Its kind is not known.")


def _existing(path: Path) -> Finding:
    name = "data directory"
    if not path.is_dir():
        return problem(name, f"{path} is not a directory.", "Give another one with --data-dir.")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return problem(
            name,
            f"{path} cannot be written by this user.",
            f"Run the server as its owner, or `chown` {path}.",
        )
    try:
        refuse_if_in_use(path)
    except DirectoryInUse as error:
        owner = "A server" if error.pid is None else f"The server with process id {error.pid}"
        return ok(name, f"{owner} runs on {path}.")
    except StartError as error:
        return problem(name, str(error), f"Look at the permissions of {path}.")
    return ok(name, f"{path} can be used; no server runs on it.")


def _missing(path: Path, place: Path) -> Finding:
    name = "data directory"
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return problem(
            name,
            f"{path} does not exist and cannot be created in {place}.",
            "Create it for the user of the server, or give another one with --data-dir.",
        )
    return ok(name, f"{path} does not exist; it is created at the start.")


def _nearest(path: Path) -> Path:
    """The nearest ancestor that exists."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    return place


def _kind(place: Path, mounts: Path) -> str:
    """The type of the file system that a directory is on; empty if it is not known."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        before, dash, after = line.partition(" - ")
        fields = before.split()
        if not dash or len(fields) < 5:
            continue
        mount = Path(fields[4].replace("\\040", " "))
        if place.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), after.split()[0]
    return kind
