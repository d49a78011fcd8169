"""Paths of this machine, looked at before Spark starts: a job of an hour must not end at the last
step because a folder was mistyped.

An address of another file system (s3a://, hdfs://) is left to Spark, which alone can reach it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rockgate.pipeline.errors import BadOption

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")


def local(text: str) -> Path | None:
    """The local path; None for an address of another file system."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    if scheme[1] != "file":
        return None
    return Path("/" + text[len("file:") :].lstrip("/"))


def check_folder(text: str, flag: str) -> None:
    """BadOption, if nothing can be written below a folder; it need not be there yet."""
    path = local(text)
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise BadOption(f"Invalid {flag}: {text} is a file, expected a directory.")
    _check_writable(path, text, flag)


def check_file(text: str, flag: str) -> None:
    """BadOption, if a file cannot be written: its folder is missing, say."""
    path = Path(text)
    if path.is_dir():
        raise BadOption(f"Invalid {flag}: {text} is a directory, expected a file.")
    if not path.absolute().parent.is_dir():
        raise BadOption(f"Invalid {flag}: directory {path.absolute().parent} does not exist.")
    _check_writable(path, text, flag)


def check_present(text: str, flag: str) -> None:
    """BadOption, if a folder that is to be read does not exist."""
    path = local(text)
    if path is not None and not path.is_dir():
        what = "is a file, expected a directory" if path.exists() else "does not exist"
        raise BadOption(f"Invalid {flag}: {text} {what}.")


def _check_writable(path: Path, text: str, flag: str) -> None:
    """Check the part of the path that exists: the rest would be created within it."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() and there != path.absolute():
        raise BadOption(f"Invalid {flag}: {there} is a file, not a directory.")
    if not os.access(there, os.W_OK):
        raise BadOption(f"Invalid {flag}: {there} is not writable.")
