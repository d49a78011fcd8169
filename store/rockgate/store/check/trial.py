"""Trials: the outcome of a start on a data directory, found by running it on an overlay.

`check` reports damage, which is not the same as what a start refuses: a start only reads what it
needs. So the start itself is run on an overlay that writes nothing, and the outcome is right
whatever the rules are. A repair is tried in the same way before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rockgate.store.check.inspectfiles import read_checkpoint
from rockgate.store.check.logwalk import COMMITLOG, Row
from rockgate.store.check.shadow import ShadowDirectory
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import CannotRepair, StoreCorrupt, StoreError
from rockgate.store.files.interface import PAGE_SIZE, Directory
from rockgate.store.store import Store

Opener = Callable[[Directory], object]
"""Opens a store in a directory as a server would, with its folds and its settings."""


class CannotOpen(Exception):
    """Raised by an opener for its own reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a start is refused."""

    reason: str
    position: int | None = None
    """Where the log is damaged, if that is the reason."""
    is_repairable: bool = True
    """Whether truncating the log may help; not if a setting or the disk is the reason."""


def segment_bytes_of(directory: Directory) -> int:
    """Return a directory's segment size: that of the checkpoint, or of most files.

    0 if there is neither, or a single file of an implausible size: it was truncated.
    """
    checkpoint, _ = read_checkpoint(directory)
    size = checkpoint.segment_bytes if checkpoint is not None else 0
    if not size and directory.has_child(COMMITLOG):
        row = Row(directory.child(COMMITLOG))
        is_cut = len(row.segments) == 1 and row.segment_size % PAGE_SIZE
        size = 0 if is_cut else row.segment_size
        row.close()
    return size


def plain_opener(directory: Directory) -> Opener:
    """Return an opener with default settings except for the segment size."""
    size = segment_bytes_of(directory)
    config = StoreConfig(segment_bytes=size) if size else StoreConfig()
    return lambda where: Store(where, config, SystemClock()).begin_epoch()


def refusal_of(
    directory: Directory,
    opens: Opener,
    before: Callable[[Directory], object] = lambda shadow: None,
) -> Refusal | None:
    """Return why a start would be refused, or None, without changing anything.

    `before` is applied to the overlay first.
    """
    shadow = ShadowDirectory(directory, directory.path)
    try:
        before(shadow)
        opens(shadow)
    except StoreCorrupt as damage:
        return Refusal(reason=str(damage), position=damage.position)
    except (CannotOpen, StoreError, ValueError) as error:
        return Refusal(reason=str(error), is_repairable=False)
    except OSError as error:
        return Refusal(reason=f"{error.strerror or error}.", is_repairable=False)
    finally:
        shadow.close()
    return None


def find_repair(
    directory: Directory,
    end: int,
    opens: Opener,
    truncates: Callable[[Directory, int], object],
) -> int | None:
    """Return the highest position at which the log can be truncated so that a server starts.

    None if there is none. The search starts at `end` and continues with the position that each
    refusal reports.
    """
    position = end
    while True:
        below: int | None = None
        try:
            ended = partial(_ended, truncates=truncates, position=position)
            refusal = refusal_of(directory, opens, ended)
            if refusal is None:
                return position
            below = refusal.position
        except CannotRepair as error:
            below = error.instead
        if below is None or below >= position:
            return None
        position = below


def _ended(
    shadow: Directory, *, truncates: Callable[[Directory, int], object], position: int
) -> None:
    truncates(shadow, position)
