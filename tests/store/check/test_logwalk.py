"""Walking the log's bytes past whatever is wrong with them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.inspected import furnished
from tests.store.keeping import SEGMENT, Keeping

from rockgate.store.check.logwalk import COMMITLOG, Damaged, Filler, Piece, Row, Unwritten, Whole


def pieces(keeping: Keeping) -> list[Piece]:
    row = Row(keeping.disk.root().child(COMMITLOG))
    return list(row.walk(row.start, row.end))


def test_pieces_follow_each_other_without_a_gap_from_the_first_file_to_the_last() -> None:
    keeping = furnished()
    found = pieces(keeping)
    position = SEGMENT
    for piece in found:
        assert piece.position == position
        position += piece.size
    row = Row(keeping.disk.root().child(COMMITLOG))
    assert position == row.end
    assert {type(piece) for piece in found} == {Whole, Filler, Unwritten}


def test_a_walk_takes_what_begins_in_the_range() -> None:
    keeping = furnished()
    row = Row(keeping.disk.root().child(COMMITLOG))
    found = pieces(keeping)
    assert list(row.walk(found[3].position, found[7].position)) == found[3:7]
    assert row.find(0) is None
    assert row.file_at(0) == row.path
    assert row.file_at(SEGMENT + 1).endswith(f"{SEGMENT:020d}")


def test_files_of_other_names_are_not_segments() -> None:
    keeping = furnished()
    directory = keeping.disk.root().child(COMMITLOG)
    directory.create("00000000000000016384.new").write(0, b"x")
    directory.create("notes").write(0, b"x")
    assert Row(directory).problems == []


@settings(max_examples=budget("property_examples"), deadline=None)
@given(data=st.data())
def test_after_any_damage_the_next_whole_entry_is_found_again(data: st.DataObject) -> None:
    keeping = _FURNISHED
    disk = keeping.disk.killed()
    row = Row(disk.root().child(COMMITLOG))
    before = [p for p in row.walk(row.start, row.end) if isinstance(p, Whole)]
    mapping = disk.root().child(COMMITLOG).map(f"{SEGMENT:020d}", writable=True)
    start = data.draw(st.integers(0, SEGMENT - 1), label="start")
    size = data.draw(st.integers(1, 700), label="size")
    noise = data.draw(st.binary(min_size=size, max_size=size), label="noise")[: SEGMENT - start]
    hit = range(SEGMENT + start, SEGMENT + start + len(noise))
    mapping.view[start : start + len(noise)] = noise
    row = Row(disk.root().child(COMMITLOG))
    after = list(row.walk(row.start, row.end))
    # Every entry that was not hit is still at its place; the rest is damage.
    spared = [
        p.position for p in before if hit.stop <= p.position or hit.start >= p.position + p.size
    ]
    whole = [piece.position for piece in after if isinstance(piece, Whole)]
    assert [position for position in whole if position in spared] == spared
    for piece in after:
        assert piece.size > 0
        if isinstance(piece, Damaged):
            assert piece.reason


_FURNISHED = furnished()
