"""Records, headers and properties of every kind, for property tests of the mapping."""

from __future__ import annotations

from hypothesis import strategies as st

from rockgate.gateway.transcode.dictionary import SYSTEM
from rockgate.protocol.kafka.records.record import Header, Record

texts = st.text(st.characters(codec="utf-8"), max_size=12)
header_names = st.one_of(
    texts,
    st.sampled_from(sorted(SYSTEM)),
    st.sampled_from(["TAGS", "a", "b", "__x", "__KAFKA_KEY", "__KAFKA_X_0", "__KAFKA_H_", "n\x01"]),
)
values = st.one_of(
    st.none(),
    st.binary(max_size=12),
    texts.map(str.encode),
    st.sampled_from([b"v", b".:", b"\x02"]),
)
headers: st.SearchStrategy[tuple[Header, ...]] = st.lists(
    st.tuples(header_names, values), max_size=6
).map(tuple)
keys = st.one_of(st.none(), st.binary(max_size=12), texts.map(str.encode), st.just(b"two words"))


@st.composite
def batches(draw: st.DrawFn, *, with_gaps: bool = False) -> list[Record]:
    """Records with ascending offsets from 0 on; without gaps they are 0, 1, 2."""
    count = draw(st.integers(1, 8))
    offset = -1
    records = []
    for _ in range(count):
        offset += draw(st.integers(1, 3)) if with_gaps else 1
        records.append(
            Record(
                offset,
                draw(st.integers(-1, 1 << 45)),
                draw(keys),
                draw(values),
                draw(headers),
            )
        )
    return records
