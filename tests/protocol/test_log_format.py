"""docs/internals/log-format.md says what rockgate.protocol.entry does, in tables and dumps."""

import re
from pathlib import Path

import pytest

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import MAGIC_BATCH, MAGIC_V1, MAGIC_V2
from rockgate.protocol.entry.layout import LAYOUTS

PAGE = (Path(__file__).parents[2] / "docs" / "internals" / "log-format.md").read_text(
    encoding="utf-8"
)

BORN_V4 = envelope.pack_host(bytes([192, 0, 2, 7]), 50001)
BORN_V6 = envelope.pack_host(bytes.fromhex("20010db8000000000000000000000007"), 50001)
STORE = envelope.pack_host(bytes([192, 0, 2, 1]), 10911)


def pack(
    *,
    magic: int,
    sys_flag: int,
    queue_id: int,
    offset: int,
    position: int,
    born_host: bytes,
    topic: bytes,
    body: bytes,
    properties: bytes,
) -> bytes:
    size = envelope.head_size(sys_flag) + len(body)
    head = envelope.pack_head(
        total_size=size + envelope.tail_size(topic, properties, magic),
        magic=magic,
        body_crc=envelope.body_checksum(body),
        queue_id=queue_id,
        flag=0,
        queue_offset=offset,
        position=position,
        sys_flag=sys_flag,
        born_ms=1_700_000_000_000,
        born_host=born_host,
        store_ms=1_700_000_000_005,
        store_host=STORE,
        reconsume_times=0,
        prepared_offset=0,
        body_size=len(body),
    )
    return head + body + envelope.pack_tail(head, topic, properties, magic)


EXAMPLES = {
    "message-v1": pack(
        magic=MAGIC_V1,
        sys_flag=0,
        queue_id=3,
        offset=41,
        position=4096,
        born_host=BORN_V4,
        topic=b"orders",
        body=b"hello",
        properties=envelope.pack_properties([("KEYS", "order-17"), ("TAGS", "paid")]),
    ),
    "message-v2": pack(
        magic=MAGIC_V2,
        sys_flag=envelope.BORN_HOST_V6,
        queue_id=0,
        offset=0,
        position=4238,
        born_host=BORN_V6,
        topic=b"orders-" + b"x" * 121,
        body=b"",
        properties=b"",
    ),
    "batch": pack(
        magic=MAGIC_BATCH,
        sys_flag=envelope.INNER_BATCH,
        queue_id=1,
        offset=1000,
        position=4486,
        born_host=BORN_V4,
        topic=b"clicks",
        body=b"<batch>",
        properties=envelope.batch_properties(3, 1000),
    ),
    "filler": envelope.pack_blank(200),
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


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its first two lines."""
    [part] = re.findall(rf"^## {heading}\n(.*?)(?:^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    rows = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_dump_on_the_page_is_what_the_codec_writes(name: str) -> None:
    assert dump(name) == EXAMPLES[name]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "filler"])
def test_the_dumped_entry_is_valid_and_stands_where_it_says(name: str) -> None:
    data = dump(name)
    read = envelope.read(data)
    envelope.check(data, read)
    assert re.search(rf"position +{read.position}$", PAGE, re.MULTILINE)


def test_the_dumps_name_the_fields_in_the_order_of_the_layout() -> None:
    for name, magic in (("message-v1", MAGIC_V1), ("batch", MAGIC_BATCH)):
        layout = LAYOUTS[magic, False, False]
        [text] = re.findall(rf"^```text {name}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        fields = [line[42:59].strip() for line in text.splitlines()]
        declared = [item.name for item in layout.subcons if item.name != "properties"]
        assert [field for field in fields if field in declared] == declared


def test_the_table_of_the_envelope_has_the_places_and_sizes_of_the_layout() -> None:
    rows = table("The envelope")
    layout = LAYOUTS[MAGIC_V1, False, False]
    assert [row[2].strip("`") for row in rows if row[2]] == [part.name for part in layout.subcons]
    at = 0
    for row, part in zip(rows, layout.subcons, strict=False):
        if part.name == "body":
            break
        assert (int(row[0]), int(row[1])) == (at, part.sizeof()), part.name
        at += part.sizeof()
    assert at + 4 == envelope.HEAD_SIZE_V4 == 88


def test_the_table_of_kinds_has_every_magic() -> None:
    told = {row[0].strip("`"): int(row[1].strip("`"), 16) for row in table("Kinds")}
    assert told == {
        name: value for name, value in vars(envelope).items() if name.startswith("MAGIC_")
    }


def test_the_table_of_flags_has_every_flag() -> None:
    told = {row[1].strip("`"): 1 << int(row[0]) for row in table("Flags") if row[1]}
    for name, value in told.items():
        assert getattr(envelope, name) == value, name
    known = {name for name in vars(envelope) if re.match("TRANSACTION_|MULTI|.*_HOST_V6$", name)}
    known = {name for name in known if not name.startswith("_")}
    known |= {"COMPRESSED", "INNER_BATCH", "MOVED", "CONTINUES", "DELAYED"}
    assert known - told.keys() == {"TRANSACTION_ROLLBACK"}
