"""A group that is packed in one piece has the bytes of one that is written entry by entry."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.logs import SEGMENT, new_log

from rockgate.protocol import entry as envelope
from rockgate.store.log.draft import Draft
from rockgate.store.testing.memory_files import MemoryDisk

LONG = 1 << 62
DRAFTS = st.builds(
    Draft,
    topic=st.sampled_from([b"a", b"topic", b"t" * 200]),
    queue_id=st.integers(0, 9),
    offset=st.integers(-1, LONG),
    body=st.binary(max_size=60),
    properties=st.sampled_from([b"", b"KEYS\x01k\x02"]),
    batch_count=st.integers(0, 3),
    born_ms=st.integers(-1, LONG),
    born_host=st.binary(min_size=8, max_size=8),
    flag=st.integers(0, 9),
    sys_flag=st.sampled_from([0, envelope.CONTINUES, envelope.DELAYED]),
    reconsume_times=st.integers(0, 9),
    prepared_offset=st.integers(0, LONG),
    store_ms=st.sampled_from([0, 5]),
    stamp=st.none(),
    store_host=st.just(b""),
)


def nothing(body: memoryview, offset: int) -> None:
    """Stamp a body with nothing: the entry is then written where it lies."""


@given(st.lists(DRAFTS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_group_in_one_piece_is_the_group_entry_by_entry(drafts: list[Draft]) -> None:
    logs = [new_log(MemoryDisk().root(), segment=SEGMENT) for _ in range(2)]
    whole = logs[0].append_group(drafts)
    each = logs[1].append_group([draft._replace(stamp=nothing) for draft in drafts])
    assert whole == each
    assert logs[0].end == logs[1].end
    first, second = (log.slice(0, log.end) for log in logs)
    assert first == second
