"""First records name their batches; all other messages, and damaged ones, name nothing."""

from __future__ import annotations

import pytest
from tests.gateway.transcode.remote.test_pulled_messages import message, records_of, stored
from tests.gateway.transcode.remote.test_sent_records import alike, sent

from rockgate.gateway.rocketmq.queues.batch_marks import UNKNOWN, BatchMark, find_marks
from rockgate.protocol.entry import EntryError

KEY = b"K00000000000000FF000200000010"


def test_the_first_record_names_its_batch_and_the_others_nothing() -> None:
    data = stored(sent(alike(40), unique=KEY), 100) + stored(sent(alike(3)), 140)
    found = find_marks(data)
    assert found.batches == [BatchMark(1, 100, 255, 2, 16, 40)]
    assert found.end == 143
    # And no client sees it.
    assert [record.headers for record in records_of(data)] == [(("trace", b"x"),)] * 43


@pytest.mark.parametrize(
    "properties",
    [
        b"KEYS\x01" + KEY + b"\x02",
        b"UNIQ_KEY\x01AC1100\x02",
        b"UNIQ_KEY\x01K0000\x02",
        b"UNIQ_KEY\x01KFFFFFFFFFFFFFFFF000200000010\x02",
        b"a\x01UNIQ_KEY\x01" + KEY[:-1],
    ],
)
def test_what_is_no_key_of_ours_names_nothing(properties: bytes) -> None:
    assert find_marks(message(7, properties)).batches == []


def test_a_batch_without_a_count_is_known_by_its_beginning_only() -> None:
    [mark] = find_marks(message(7, b"UNIQ_KEY\x01" + KEY + b"\x02")).batches
    assert mark == BatchMark(1, 7, 255, 2, 16, UNKNOWN)


def test_damaged_messages_are_an_error_and_no_messages_are_none() -> None:
    data = message(7, b"")
    for broken in (data[:50], data[:-1], b"\x00\x00\x00\x01" + data[4:]):
        with pytest.raises(EntryError):
            find_marks(broken)
    assert find_marks(b"", 5) == ([], 5)
