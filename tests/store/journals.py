"""A journal in memory: it assigns positions and applies changes to folds, as the store does."""

from collections.abc import Sequence

from rockgate.store.files.interface import Directory
from rockgate.store.state.fold import Change, Fold, State
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.testing.memory_files import MemoryDisk

ENVELOPE_SIZE = 100


class MemoryJournal:
    """Stores every change, so that a test can replay any part of the log."""

    def __init__(self) -> None:
        self.end = 0
        self.changes: list[Change] = []
        self.bodies: list[bytes] = []
        self.group_sizes: list[int] = []
        self.state: State | None = None
        self.failure: Exception | None = None

    def attach(self, *folds: Fold, directory: Directory | None = None) -> State:
        """Apply changes to these folds from now on."""
        self.state = State(folds, Snapshots(directory or MemoryDisk().root()))
        return self.state

    def append_state(self, topic: bytes, body: bytes) -> int:
        return self.append_states([(topic, body)])

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        if self.failure is not None:
            raise self.failure
        position = self.end
        self.group_sizes.append(len(changes))
        for topic, body in changes:
            position = self.end
            change = change_at(position, topic, body)
            self.end += ENVELOPE_SIZE + len(body)
            self.changes.append(change)
            self.bodies.append(body)
            if self.state is not None:
                self.state.apply(change)
        return position

    def replay(self, state: State, replay_from: int) -> None:
        """Apply everything from a position on, as a start does."""
        for change in self.changes:
            if change.position >= replay_from:
                state.apply(change)


def change_at(position: int, topic: bytes, body: bytes, sys_flag: int = 0) -> Change:
    return Change(position, 0, topic, 0, -1, sys_flag, b"", memoryview(body))
