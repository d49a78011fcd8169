"""Trials: the outcome of a start on a data directory, found by running it on an overlay.

`check` tells what is damaged, which is not the same as what a start refuses: it reads only what it
needs. So the start itself is asked, on a shadow that writes nowhere, and its answer is right for
whatever rules a start has. A repair is tried in the same way before anything is changed.
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
    """What an opener raises for a reason of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a start is refused."""

    reason: str
    position: int | None = None
    """Where the log is damaged, if that is why."""
    is_repairable: bool = True
    """Whether ending the log earlier may help; not if a setting or the disk is in the way."""


def segment_bytes_of(directory: Directory) -> int:
    """Return the size of a directory's segments: the checkpoint's word, or what most files have.

    0 if there is neither, or one file alone of a size that nobody would have set: it was cut.
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
    """Return what opens a directory with default settings, but for the size of its segments."""
    size = segment_bytes_of(directory)
    config = StoreConfig(segment_bytes=size) if size else StoreConfig()
    return lambda where: Store(where, config, SystemClock()).begin_epoch()


def refusal_of(
    directory: Directory,
    opens: Opener,
    before: Callable[[Directory], object] = lambda shadow: None,
) -> Refusal | None:
    """Return why a start would be refused, None if it would not, and change nothing.

    `before` is what shall be done to the directory first.
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
    """Return the highest position at which the log can be ended so that a server starts.

    None if there is no such position. The search begins at `end` and goes down from refusal to
    refusal: each names the place that is in its way.
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
