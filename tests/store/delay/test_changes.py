from __future__ import annotations

import pytest
from tests.store.journals import change_at

from rockgate.store.delay.changes import (
    DELAY_TOPIC,
    DelayChangeKind,
    Ended,
    decode,
    encode_ended,
    encode_schedule,
)
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.state.fold import CHANGE_SIZE_MAX

ID = bytes(range(16))


def test_a_schedule_is_read_as_it_was_written_in_parts_that_fit() -> None:
    waits = [(1 << 40 | n, (1 << 45) + n) for n in range(50_000)]
    bodies = list(encode_schedule(ID, 3, waits))
    assert max(map(len, bodies)) < CHANGE_SIZE_MAX
    read = []
    for body in bodies:
        kind, [item] = decode(change_at(0, DELAY_TOPIC, body))
        assert (kind, item.topic_id, item.queue_id) == (DelayChangeKind.SCHEDULE, ID, 3)
        read += item.waits
    assert read == waits


@pytest.mark.parametrize(
    "kind", [DelayChangeKind.DELIVERED, DelayChangeKind.RECALLED, DelayChangeKind.LOST]
)
def test_an_end_is_read_as_it_was_written(kind: DelayChangeKind) -> None:
    ended = [Ended(ID, 0, [1, 2]), Ended(ID, 7, [5])]
    assert decode(change_at(0, DELAY_TOPIC, encode_ended(kind, ended))) == (kind, ended)


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x01\x09\x90", b"\x01\x01\xff", b"\x01\x02\x91"])
def test_a_change_that_is_none_is_damage(body: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        decode(change_at(0, DELAY_TOPIC, body))


def test_a_later_format_is_refused() -> None:
    with pytest.raises(FormatTooNew):
        decode(change_at(0, DELAY_TOPIC, b"\x02\x01\x90"))
