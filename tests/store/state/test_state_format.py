"""docs/internals/state.md says what the code does: its tables and dumps are compared."""

import dataclasses
import re
from pathlib import Path

import pytest

from rockgate.store.progress import records
from rockgate.store.progress.records import Commit, Held, pack_record, position_key
from rockgate.store.state import snapshotfile, topicchanges
from rockgate.store.state.snapshotfile import SnapshotBuilder
from rockgate.store.state.snapshotter import SnapshotConfig
from rockgate.store.state.topicchanges import Created, TopicChangeKind
from rockgate.store.testing.memory_files import MemoryDisk

PAGE = (Path(__file__).parents[3] / "docs" / "internals" / "state.md").read_text(encoding="utf-8")

ID = bytes(range(1, 17))


def snapshot_example() -> bytes:
    file = MemoryDisk().root().create("s")
    builder = SnapshotBuilder(file, ["topics", "notes"], 4096, 1_700_000_000_000)
    builder.add(1, b"\x01one")
    builder.add(1, b"\x01two")
    return file.read(0, builder.finish(needs=8192))


RECORD = pack_record(Commit(ID, 2, 17, 3, "hi"), 1_700_000_000_000)
EXAMPLES = {
    "snapshot": snapshot_example(),
    "topic-create": next(
        topicchanges.encode(
            TopicChangeKind.CREATE, [Created("orders", ID, 4, 6, False, {"k": "v"})]
        )
    ),
    "progress-record": position_key(4096) + RECORD,
    "progress-commit": next(records.encode_commits([Held("g", ID, {2: RECORD})])),
}


def dump(name: str) -> bytes:
    """The bytes of the page's dump of that name; each line must start where the last one ended."""
    [text] = re.findall(rf"^```text {name}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    data = b""
    for line in text.splitlines():
        found = re.match(r"(\d+) +((?:[0-9a-f]{2}(?: |$))+)", line)
        assert found, line
        assert int(found[1]) == len(data), line
        data += bytes.fromhex(found[2])
    return data


def table(after: str) -> list[list[str]]:
    """The cells of the first table after some words of the page, without its first two lines."""
    rows = []
    for line in PAGE[PAGE.index(after) :].splitlines():
        if line.startswith("|"):
            rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def places(rows: list[list[str]]) -> list[tuple[int, int]]:
    return [(int(row[0]), int(row[1])) for row in rows if row[1]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_dump_on_the_page_is_what_the_code_writes(name: str) -> None:
    assert dump(name).hex(" ") == EXAMPLES[name].hex(" ")


def test_the_headers_table_has_every_byte_of_the_head() -> None:
    at = 0
    for place, size in places(table("### Header")):
        assert place == at
        at += size
    assert at == snapshotfile.HEAD_SIZE
    assert table("### Header")[0][3] == snapshotfile.MAGIC.decode()
    assert f"at most {snapshotfile.HEADER_SIZE_MAX}" in table("### Header")[3][3]


def test_the_tables_of_folds_slices_and_trailer_have_the_sizes_of_the_code() -> None:
    for after, size in (
        (
            "For each fold:",
            snapshotfile.header_size([""]) - snapshotfile.header_size([]),
        ),
        ("A slice is:", snapshotfile.FRAME_SIZE),
        ("The file ends with a trailer", snapshotfile.TRAILER_SIZE),
    ):
        assert sum(int(row[0]) for row in table(after) if row[0]) == size, after
    assert f"at most {snapshotfile.SLICE_SIZE_MAX}" in table("A slice is:")[0][2]
    assert table("The file ends with a trailer")[2][2] == snapshotfile.END_MAGIC.decode()


def test_the_records_table_has_every_byte_before_the_metadata() -> None:
    at = 0
    for place, size in places(table("A record:")):
        assert place == at
        at += size
    assert at == records.POSITION_SIZE + records.FIELDS_SIZE
    assert f"at most {records.METADATA_SIZE_MAX} bytes" in table("A record:")[-1][3]


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("## Changes of topics", topicchanges.TopicChangeKind),
        ("## Changes of progress", records.ProgressRecordKind),
    ],
)
def test_the_kinds_of_changes_are_those_of_the_code(
    heading: str, kinds: type[topicchanges.TopicChangeKind] | type[records.ProgressRecordKind]
) -> None:
    assert [(int(row[0]), row[1]) for row in table(heading)] == [
        (kind.value, kind.name) for kind in kinds
    ]


def test_the_settings_have_the_defaults_of_the_code() -> None:
    assert [row[:2] for row in table("## When a snapshot is due")] == [
        [field.name, str(field.default)] for field in dataclasses.fields(SnapshotConfig)
    ]
