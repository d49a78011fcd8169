"""The parts of a fold: the changes it reads, the journal it writes, and its snapshots."""

from __future__ import annotations

from rockgate.store.state.fold import CHANGE_SIZE_MAX, Change, Fold, Journal, check_format
from rockgate.store.state.keyed import KeyedFold
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced

__all__ = [
    "CHANGE_SIZE_MAX",
    "Change",
    "Fold",
    "Journal",
    "KeyedFold",
    "Measured",
    "Roster",
    "check_format",
    "pack_array",
    "sliced",
]
