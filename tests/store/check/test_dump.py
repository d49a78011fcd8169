"""The log as rows, compared with a worked example."""

from __future__ import annotations

import pytest
from tests.store.inspected import flip
from tests.store.keeping import SEGMENT, Keeping

from rockgate.protocol import entry as envelope
from rockgate.store.check.dump import DumpRow, dump, flag_names
from rockgate.store.check.logwalk import COMMITLOG
from rockgate.store.log.commitlog import Draft
from rockgate.store.log.segments import segment_name
from rockgate.store.write.append import Intake

NOW_MS = 1_700_000_000_000


def example() -> Keeping:
    """An epoch, a topic, a message, a batch and a group of two."""
    keeping = Keeping()
    keeping.topic("orders", 2)
    queue = keeping.queue("orders", 1)
    appender = keeping.store.appender
    keeping.clock.advance(5)
    appender.message(queue, Draft(b"", 0, 0, b"hello", b"KEYS\x01k\x02TAGS\x01paid\x02", born_ms=7))
    appender.batch(queue, b"<batch>", count=3, record_ms=9)
    appender.group([Intake(queue, Draft(b"", 0, 0, b"1")), Intake(queue, Draft(b"", 0, 0, b"2"))])
    return keeping


def test_a_dump_of_a_worked_example() -> None:
    epoch, created, message, batch, one, two = dump(example().disk.root())
    assert (epoch.kind, epoch.topic) == ("state", "rmq_sys_rockgate_epoch")
    assert (created.kind, created.topic) == ("state", "rmq_sys_rockgate_topics")
    assert (created.offset, created.position) == (-1, epoch.size)
    assert message == DumpRow(
        position=created.position + created.size,
        size=142,
        kind="message",
        topic="orders",
        queue_id=1,
        offset=0,
        offset_count=1,
        store_ms=NOW_MS + 5,
        born_ms=7,
        flags=(),
        body_size=5,
        properties={"KEYS": "k", "TAGS": "paid"},
    )._replace(size=message.size)
    assert batch.position == message.position + message.size
    assert batch[2:] == (
        "batch",
        "orders",
        1,
        1,
        3,
        NOW_MS + 5,
        9,
        ("inner-batch",),
        7,
        {"INNER_NUM": "0000000003", "INNER_BASE": "1"},
        "",
    )
    assert [(row.offset, row.flags) for row in (one, two)] == [(4, ("continues",)), (5, ())]


def test_a_dump_may_begin_and_end_anywhere() -> None:
    directory = example().disk.root()
    rows = list(dump(directory))
    for index, row in enumerate(rows):
        assert list(dump(directory, row.position)) == rows[index:]
        assert list(dump(directory, row.position + 1)) == rows[index + 1 :]
        assert list(dump(directory, None, row.position)) == rows[:index]
        assert list(dump(directory, row.position, row.position + 1)) == [row]
    assert list(dump(directory, 1 << 40)) == []


def test_fillers_and_damage_are_shown_in_their_places() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    keeping.fill_segment("orders")
    rows = list(dump(keeping.disk.root()))
    [filler] = [row for row in rows if row.kind == "filler"]
    assert filler.position + filler.size == SEGMENT
    victim = rows[4]
    flip(keeping.disk, COMMITLOG, segment_name(0), victim.position + 100)
    after = list(dump(keeping.disk.root()))
    assert after[:4] + after[5:] == rows[:4] + rows[5:]
    assert (after[4].kind, after[4].size) == ("damaged", victim.size)
    assert "checksum" in after[4].reason


@pytest.mark.parametrize(
    ("flag", "names"),
    [
        (0, ()),
        (envelope.MOVED | envelope.COMPRESSED, ("compressed", "moved")),
        (envelope.TRANSACTION_PREPARED, ("prepared",)),
        (envelope.TRANSACTION_COMMIT | envelope.DELAYED, ("delayed", "committed")),
        (envelope.TRANSACTION_ROLLBACK, ("rolled-back",)),
        (1 << 9 | envelope.CONTINUES, ("continues", "0x200")),
    ],
)
def test_flags_are_named(flag: int, names: tuple[str, ...]) -> None:
    assert flag_names(flag) == names
