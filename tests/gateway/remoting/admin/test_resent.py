"""Which dead letters were sent again, as a fold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.store.journals import MemoryJournal

from rockgate.gateway.remoting.admin.resent import STRETCH, TOPIC, Resent


class Queues:
    """Queues by topic id and number."""

    def __init__(self, *queues: Any) -> None:
        self._queues = {(queue.topic_id, queue.queue_id): queue for queue in queues}

    def find(self, topic_id: bytes, queue_id: int) -> Any:
        return self._queues.get((topic_id, queue_id))


def queue(letter: str, log_start: int = 0) -> Any:
    return SimpleNamespace(topic_id=letter.encode() * 16, queue_id=0, log_start=log_start)


def made() -> tuple[Resent, MemoryJournal]:
    journal = MemoryJournal()
    resent = Resent(journal)
    journal.attach(resent.fold)
    return resent, journal


def resend(resent: Resent, journal: MemoryJournal, where: Any, offset: int, queues: Any) -> None:
    journal.append_state(TOPIC, resent.change(where, offset, queues))


def test_each_offset_is_remembered_by_itself_across_snapshots() -> None:
    resent, journal = made()
    first, second = queue("a"), queue("b")
    queues = Queues(first, second)
    for offset in (0, 7, STRETCH - 1, STRETCH, 5 * STRETCH + 3):
        resend(resent, journal, first, offset, queues)
    restored = Resent(journal)
    restored.fold.restore(list(resent.fold.snapshot()))
    for each in (resent, restored):
        found = [offset for offset in range(6 * STRETCH) if each.has(first, offset)]
        assert found == [0, 7, STRETCH - 1, STRETCH, 5 * STRETCH + 3]
        assert not each.has(second, 7)


def test_what_retention_or_a_deletion_took_is_forgotten_with_the_next() -> None:
    resent, journal = made()
    first, gone = queue("a"), queue("b")
    queues = Queues(first, gone)
    resend(resent, journal, first, 3, queues)
    resend(resent, journal, gone, 3, queues)
    first.log_start = STRETCH - 1
    resend(resent, journal, first, STRETCH, Queues(first))
    assert resent.has(first, 3)  # its stretch is not wholly gone
    assert not resent.has(gone, 3)
    first.log_start = STRETCH
    resend(resent, journal, first, STRETCH + 1, Queues(first))
    assert not resent.has(first, 3)
    assert resent.has(first, STRETCH) and resent.has(first, STRETCH + 1)
