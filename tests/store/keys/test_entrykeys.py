from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INDEXED, INNER_BATCH, TRANSACTION_ROLLBACK
from rockgate.store.keys.entrykeys import entry_keys, found_now, keys_of, keys_of_all, no_keys


def keys(magic: int, sys_flag: int, offset: int = 5, properties: bytes = b"") -> list[bytes]:
    body, topic = b"one two", b"orders"
    size = envelope.HEAD_SIZE_V4 + len(body) + envelope.tail_size(topic, properties, magic)
    head = envelope.pack_head(
        size, magic, 0, 0, 0, offset, 0, sys_flag, 1, bytes(8), 1, bytes(8), 0, 0, len(body)
    )
    view = memoryview(head + body + envelope.pack_tail(head, topic, properties, magic))
    return list(found_now(entry_keys(view, envelope.read(view), lambda body: bytes(body).split())))


KEYED = b"UNIQ_KEY\x01u\x02KEYS\x01a  b\x02"


def test_a_message_has_its_unique_key_and_the_words_of_its_keys() -> None:
    assert keys_of(KEYED) == keys(envelope.MAGIC_V1, 0, properties=KEYED) == [b"u", b"a", b"b"]


@pytest.mark.parametrize(("sys_flag", "offset"), [(0, -1), (TRANSACTION_ROLLBACK, 5)])
def test_state_and_rollbacks_have_none(sys_flag: int, offset: int) -> None:
    assert keys(envelope.MAGIC_V1, sys_flag, offset, KEYED) == []


@pytest.mark.parametrize(("sys_flag", "expected"), [(INDEXED, [b"one", b"two"]), (0, [])])
def test_a_batch_has_those_of_its_records_if_its_flag_says_so(
    sys_flag: int, expected: list[bytes]
) -> None:
    properties = envelope.batch_properties(2, 5)
    found = keys(envelope.MAGIC_BATCH, sys_flag | INNER_BATCH, properties=properties)
    assert found == expected


def test_without_anyone_who_opens_batches_they_have_none() -> None:
    assert no_keys(memoryview(b"one two")) == ()


ids = st.sampled_from(
    [b"7F0000010A5C18B4AAC2116BB6A8000%d" % n for n in range(3)] + [b"a\x02" * 16, b"0" * 56]
)
rests = st.sampled_from(
    [b"WAIT\x01true\x02", b"KEYS\x01a  b\x02", b"UNIQ_KEY\x011\x02", b"KEYSTONE\x01a\x02", b""]
)
alike = st.builds(b"UNIQ_KEY\x01%b\x02%b".__mod__, st.tuples(ids, rests))
unlike = st.sampled_from([b"", b"x" * 41, b"UNIQ_KEY\x01", KEYED, b"WAIT\x01true\x02" * 5])


@given(st.lists(alike | unlike, min_size=1, max_size=4))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_many_messages_have_together_what_each_of_them_has(properties: list[bytes]) -> None:
    positions = range(len(properties))
    wanted = [(key, at) for at, each in enumerate(properties) for key in keys_of(each)]
    assert list(zip(*keys_of_all(properties, positions), strict=True)) == wanted
