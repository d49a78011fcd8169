"""docs/internals/remoting.md says what rockgate.protocol.remoting does, in tables and a dump."""

import re
from pathlib import Path

import msgspec

from rockgate.protocol.remoting.codes import VERSION
from rockgate.protocol.remoting.command import Command, encode
from rockgate.protocol.remoting.compression import Compression
from rockgate.protocol.remoting.connection import FRAME_BYTES_MAX, PENDING_MAX
from rockgate.protocol.remoting.headers.send import SendHeader, SendHeaderV2
from rockgate.protocol.remoting.ids import RECORD_SHIFT
from rockgate.protocol.remoting.javajson import DEPTH_MAX

PAGE = (Path(__file__).parents[2] / "docs" / "internals" / "remoting.md").read_text(
    encoding="utf-8"
)


def table(after: str) -> list[list[str]]:
    """The cells of the first table behind a text, without its first two lines."""
    lines = PAGE.split(after, 1)[1].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_json_header_on_the_page_is_what_is_written() -> None:
    [text] = re.findall(r"^```json answer\n(.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    assert encode(Command(0, {"offset": "7"}, opaque=5, flag=1))[8:].decode() == text


def test_the_binary_header_has_the_sizes_of_the_table() -> None:
    sizes = [int(row[0]) for row in table("A **binary** header")]
    bare = encode(Command(0, encoding=1))
    assert len(bare) - 8 == sum(sizes)


def test_the_fields_of_a_send_are_those_of_the_table() -> None:
    long = {field.name: field.encode_name for field in msgspec.structs.fields(SendHeader)}
    short = {field.name: field.encode_name for field in msgspec.structs.fields(SendHeaderV2)}
    rows = table("## A send, in three forms")
    assert {row[0]: row[1] for row in rows} == long
    assert {row[0]: row[2] for row in rows} == short


def test_the_kinds_of_compression_are_those_of_the_table() -> None:
    rows = table("Compressed bodies stay compressed")
    assert {row[1]: int(row[0]) << 8 for row in rows} == {
        kind.name: kind.value for kind in Compression
    }


def test_the_limits_on_the_page_are_the_code_s() -> None:
    assert f"version {VERSION}" in PAGE
    assert f"{FRAME_BYTES_MAX // 2**20} MiB" in PAGE
    assert f"{PENDING_MAX:,} requests" in PAGE
    assert f"bounded at {DEPTH_MAX}" in PAGE
    assert f"<< {RECORD_SHIFT}`" in PAGE
