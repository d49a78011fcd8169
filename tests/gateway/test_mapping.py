from __future__ import annotations

import pytest
from tests.gateway.kafka.world import NOW_MS, World

from rockgate.gateway.mapping import Transcoding
from rockgate.protocol.entry import MOVED, pack_properties
from rockgate.protocol.kafka.records.batch import check
from rockgate.protocol.kafka.records.record import Record, read_records
from rockgate.store.commitlog import Draft


def record_of(properties: dict[str, str], sys_flag: int = 0, body: bytes = b"body") -> Record:
    world = World()
    world.topic()
    packed = pack_properties(properties.items())
    draft = Draft(b"", 0, 0, body, packed, born_ms=NOW_MS, sys_flag=sys_flag)
    world.store.appender.message(world.queue(), draft)
    run = world.store.bodies.messages(
        world.queue(), 0, 1 << 62, 1 << 30, at_least_one=True, cold=None
    )
    batch = Transcoding().batch(run, 7)
    assert check(batch).leader_epoch == 7
    [record] = read_records(batch)
    return record


def test_a_message_is_a_record_with_its_time_its_body_its_key_and_its_properties() -> None:
    record = record_of({"KEYS": "order-1", "TAGS": "paid", "who": "me"})
    assert record == Record(0, NOW_MS, b"order-1", b"body", (("TAGS", b"paid"), ("who", b"me")))


def test_a_message_without_keys_has_no_key() -> None:
    assert record_of({}).key is None


@pytest.mark.parametrize("name", ["__TID", "__RMAX", "__EPOCH"])
def test_what_the_store_gave_a_moved_entry_is_no_header(name: str) -> None:
    assert record_of({name: "1", "who": "me"}, MOVED).headers == (("who", b"me"),)


def test_bytes_that_are_no_text_come_through_in_a_value_and_are_replaced_in_a_name() -> None:
    record = record_of({"n\udcff": "v\udcff", "KEYS": "k\udcff"})
    assert record.headers == (("n\ufffd", b"v\xff"),) and record.key == b"k\xff"
