"""Group progress: the committed offset of each group in each queue.

Keyed by group, topic id and queue, so that offsets of an earlier incarnation of a topic never come
back; deleting a topic removes its progress with the same log entry. The caller decides when offsets
expire: `page` iterates over them, `remove` deletes them.

An acknowledged commit is appended before `commit` returns. One without a waiting client is buffered
and appended by `step`, each group and queue at most once a second and never if the value is
unchanged; `flush` appends everything at shutdown. Until then it can be read, and is lost if the
server dies. A lower offset than before is accepted: a group may be reset.

The last writer wins by position: a record starts with the position of its change, and an older
change does not replace it. The offsets of a transaction are committed as of the position where they
were written, so they do not override a commit made in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.errors import StoreError
from rockgate.store.progress.pending import Pending
from rockgate.store.progress.records import (
    POSITION_SIZE,
    PROGRESS_TOPIC,
    Commit,
    Committed,
    Held,
    Key,
    ProgressRecordKind,
    Removed,
    check_group,
    decode,
    encode_commits,
    encode_removals,
    is_same_commit,
    pack_record,
    position_key,
    unpack_slice,
)
from rockgate.store.progress.slices import slices
from rockgate.store.progress.view import CommittedOffsets
from rockgate.store.state.fold import Change, Journal
from rockgate.store.state.topicchanges import TOPICS_TOPIC, deleted_ids

__all__ = ["COALESCE_MS", "SLICE_COST", "Commit", "Committed", "Key", "Progress"]

COALESCE_MS: Final = 1_000
_ROUND_PART: Final = 1_000
SLICE_COST: Final = 1_500
"""About a millisecond of work: five hundred groups with a record each."""


class Progress(CommittedOffsets):
    """The fold of all committed offsets, and the only way to change them."""

    name: Final = "progress"
    topics: Final = frozenset((PROGRESS_TOPIC, TOPICS_TOPIC))

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        upkeep: Journal | None = None,
        coalesce_ms: int = COALESCE_MS,
        slice_cost: int = SLICE_COST,
    ) -> None:
        super().__init__()
        self._journal = journal
        self._upkeep = upkeep or journal
        self._slice_cost = slice_cost
        self._clock = clock
        self._coalesce_ms = coalesce_ms
        self._next_round_ms = 0
        self.on_removed: list[Callable[[Sequence[Removed]], None]] = []
        """Called with removals: offsets that do not count yet must be removed as well."""
        self.on_changed: list[Callable[[str, bytes, Iterable[int]], None]] = []
        """Called with the group, topic id and queue ids of offsets that have changed."""

    def __len__(self) -> int:
        return len(self._roster)

    # Changing

    def commit(self, group: str, commits: Iterable[Commit], *, acknowledged: bool = True) -> None:
        """Commit offsets; acknowledged ones are appended when this returns."""
        if acknowledged:
            self._append([body for _, body in self.changes(group, commits)], self._journal)
            return
        for held in self._held(group, commits):
            for queue_id, record in held.queues.items():
                self._defer(group, held.topic_id, queue_id, record)

    def changes(self, group: str, commits: Iterable[Commit]) -> list[tuple[bytes, bytes]]:
        """Return the changes that commit offsets, to be appended together with others."""
        held_commits = self._held(group, commits)
        return (
            [(PROGRESS_TOPIC, body) for body in encode_commits(held_commits)]
            if held_commits
            else []
        )

    def changes_as_of(
        self, group: str, commits: Sequence[tuple[Commit, int]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that commit offsets as of the positions where they were written."""
        held_commits = self._held(group, [commit for commit, _ in commits])
        by_topic = {held.topic_id: held.queues for held in held_commits}
        for commit, position in commits:
            queues = by_topic[commit.topic_id]
            queues[commit.queue_id] = position_key(position) + queues[commit.queue_id]
        bodies = encode_commits(held_commits, ProgressRecordKind.AS_OF) if held_commits else ()
        return [(PROGRESS_TOPIC, body) for body in bodies]

    def settle(self, group: str, queues: Iterable[tuple[bytes, int]]) -> None:
        """Append a group's buffered commits of some queues, so that later changes follow them."""
        if not self._pending:
            return
        waiting = ((pair, self._pending.find(group, *pair)) for pair in queues)
        held_commits = [Held(group, pair[0], {pair[1]: bare}) for pair, bare in waiting if bare]
        self._append(list(encode_commits(held_commits)) if held_commits else (), self._journal)

    def _held(self, group: str, commits: Iterable[Commit]) -> list[Held]:
        check_group(group)
        now_ms = self._clock.now_ms()
        held_commits: dict[bytes, Held] = {}
        for commit in commits:
            record = pack_record(commit, now_ms)
            held = held_commits.get(commit.topic_id)
            if held is None:
                held = held_commits[commit.topic_id] = Held(group, commit.topic_id, {})
            held.queues[commit.queue_id] = record
        return list(held_commits.values())

    def _defer(self, group: str, topic_id: bytes, queue_id: int, bare: bytes) -> None:
        record = self._record(group, topic_id, queue_id)
        if record is not None and is_same_commit(record, bare):
            self._pending.drop(group, topic_id, (queue_id,))
        else:
            self._pending.put(group, topic_id, queue_id, bare)

    def step(self, now_ms: int) -> bool:
        """Append some buffered commits, at a monotonic time; say whether to call again at once.

        Those that cannot be appended are retried in the next round, and the error is raised.
        """
        if not self._pending.is_draining:
            if not self._pending or now_ms < self._next_round_ms:
                return False
            self._pending.begin_round()
        try:
            self._append_part(self._journal)
        finally:
            # From the end of a round, so that no key is appended twice within the interval.
            self._next_round_ms = now_ms + self._coalesce_ms
        return self._pending.is_draining

    def flush(self) -> None:
        """Append all buffered commits at once, at shutdown."""
        while self._pending:
            if not self._pending.is_draining:
                self._pending.begin_round()
            self._append_part(self._upkeep)

    def _append_part(self, journal: Journal) -> None:
        held_commits = self._pending.take(_ROUND_PART)
        try:
            self._append(list(encode_commits(held_commits)), journal)
        except StoreError:
            self._pending.give_up_round(held_commits)
            raise

    def delete_groups(self, groups: Iterable[str]) -> None:
        """Remove all progress of groups."""
        self._remove([Removed(group) for group in dict.fromkeys(groups)])

    def delete_topic(self, group: str, topic_id: bytes) -> None:
        """Remove a group's progress in one topic."""
        self._remove([Removed(group, topic_id)])

    def remove(self, keys: Iterable[Key]) -> None:
        """Remove single offsets."""
        queue_ids: dict[tuple[str, bytes], list[int]] = {}
        for key in keys:
            queue_ids.setdefault(key[:2], []).append(key.queue_id)
        self._remove([Removed(*pair, ids) for pair, ids in queue_ids.items()])

    def _remove(self, removals: Sequence[Removed]) -> None:
        known = [removed for removed in removals if self._is_known(removed)]
        self._append(list(encode_removals(known)) if known else (), self._upkeep)
        for removed in removals:
            self._pending.drop(removed.group, removed.topic_id, removed.queue_ids)
        for callback in self.on_removed:
            callback(removals)

    def _is_known(self, removed: Removed) -> bool:
        topics = self._groups.get(removed.group)
        if topics is None or removed.topic_id is None:
            return topics is not None
        place = topics.get(removed.topic_id)
        if place is None or removed.queue_ids is None:
            return place is not None
        return not self._roster[place].queues.keys().isdisjoint(removed.queue_ids)

    @staticmethod
    def _append(bodies: Sequence[bytes], journal: Journal) -> None:
        if len(bodies) == 1:
            journal.append_state(PROGRESS_TOPIC, bodies[0])
        elif bodies:
            journal.append_states([(PROGRESS_TOPIC, body) for body in bodies])

    # The fold

    def apply(self, change: Change) -> None:
        """Apply a change."""
        key = position_key(change.position)
        if change.topic == TOPICS_TOPIC:
            topic_ids = deleted_ids(change)
            for topic_id in topic_ids:
                for place in list(self._topics.get(topic_id, {}).values()):
                    self._remove_older(place, key, None)
            if self._pending:
                self._pending.drop_topics(topic_ids)
            return
        kind, items = decode(change)
        if kind is ProgressRecordKind.COMMIT:
            for held in items:
                self._apply_commit(held, key)
        elif kind is ProgressRecordKind.AS_OF:
            for held in items:
                self._apply_as_of(held)
        else:
            for removed in items:
                self._apply_removal(removed, key)

    def _apply_commit(self, held: Held, key: bytes) -> None:
        if self._pending:
            self._pending.drop(held.group, held.topic_id, held.queues)
        self._changed(held.group, held.topic_id, held.queues)
        place = self._groups.get(held.group, {}).get(held.topic_id)
        if place is None:
            held.queues = {queue_id: key + bare for queue_id, bare in held.queues.items()}
            self._add(held)
            return
        records = self._roster[place].queues
        for queue_id, bare in held.queues.items():
            record = records.get(queue_id)
            if record is None or record < key:
                records[queue_id] = key + bare

    def _apply_as_of(self, held: Held) -> None:
        """Apply records that come with their positions; buffered commits are later than these."""
        self._changed(held.group, held.topic_id, held.queues)
        place = self._groups.get(held.group, {}).get(held.topic_id)
        if place is None:
            self._add(held)
            return
        records = self._roster[place].queues
        for queue_id, record in held.queues.items():
            known = records.get(queue_id)
            if known is None or known < record[:POSITION_SIZE]:
                records[queue_id] = record

    def _apply_removal(self, removed: Removed, key: bytes) -> None:
        if self._pending:
            self._pending.drop(removed.group, removed.topic_id, removed.queue_ids)
        topics = self._groups.get(removed.group, {})
        if removed.topic_id is None:
            for place in list(topics.values()):
                self._remove_older(place, key, None)
        elif removed.topic_id in topics:
            self._remove_older(topics[removed.topic_id], key, removed.queue_ids)

    def _remove_older(self, place: int, key: bytes, queue_ids: Sequence[int] | None) -> None:
        held = self._roster[place]
        records = held.queues
        self._changed(held.group, held.topic_id, records if queue_ids is None else queue_ids)
        if queue_ids is None:
            if max(records.values()) < key:
                self._drop(held, place)
                return
            queue_ids = list(records)
        for queue_id in queue_ids:
            record = records.get(queue_id)
            if record is not None and record < key:
                del records[queue_id]
        if not records:
            self._drop(held, place)

    def _changed(self, group: str, topic_id: bytes, queue_ids: Iterable[int]) -> None:
        for callback in self.on_changed:
            callback(group, topic_id, queue_ids)

    def _add(self, held: Held) -> None:
        # One string per group and one id per topic, however many combinations there are.
        topics = self._groups.get(held.group)
        if topics is None:
            topics = self._groups[held.group] = {}
        else:
            held.group = self._roster[next(iter(topics.values()))].group
        groups = self._topics.get(held.topic_id)
        if groups is None:
            groups = self._topics[held.topic_id] = {}
        else:
            held.topic_id = self._roster[next(iter(groups.values()))].topic_id
        topics[held.topic_id] = groups[held.group] = self._roster.add(held)

    def _drop(self, held: Held, place: int) -> None:
        self._roster.remove(place)
        topics = self._groups[held.group]
        del topics[held.topic_id]
        if not topics:
            del self._groups[held.group]
        groups = self._topics[held.topic_id]
        del groups[held.group]
        if not groups:
            del self._topics[held.topic_id]

    def snapshot(self) -> Iterator[bytes]:
        """Yield all records, some thousand per slice."""
        return slices(self._roster.walk(), self._slice_cost)

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace all progress with that of a snapshot."""
        self.clear()
        for data in slices:
            for held in unpack_slice(data):
                place = self._groups.get(held.group, {}).get(held.topic_id)
                if place is None:
                    self._add(held)
                else:
                    # A large topic is in pieces, or was removed and added again between two slices.
                    self._roster[place].queues.update(held.queues)

    def clear(self) -> None:
        """Remove everything."""
        self._roster.clear()
        self._groups.clear()
        self._topics.clear()
        self._pending = Pending()

    def items(self) -> Iterator[tuple[Key, bytes]]:
        """Yield every appended record by its key, to compare two states."""
        for _, held in self._roster.walk():
            if held is not None:
                for queue_id, record in held.queues.items():
                    yield Key(held.group, held.topic_id, queue_id), record
