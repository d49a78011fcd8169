"""Directories that are created once and cached outside the repository.

An existing directory is always complete, because it is filled under a temporary name and renamed.
Processes that need the same one take turns.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def user_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """The project's folder in the user's cache."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rockgate"


def cached_directory(target: Path, fill: Callable[[Path], None]) -> Path:
    """Return `target`, filled by `fill` if it does not exist; an error of `fill` leaves nothing."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(target.name + ".lock")):
        if not target.is_dir():
            aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
            try:
                fill(aside)
                aside.rename(target)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
