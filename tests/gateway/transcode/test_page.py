"""docs/internals/mapping.md says what the code does."""

from __future__ import annotations

import re

from tests.house.checkout import ROOT

from rockgate.gateway.transcode import address, compressed_bodies, dictionary, messages, names
from rockgate.gateway.transcode.batches import COMPRESSED_BODY
from rockgate.protocol.kafka.records.bounds import LIGHT
from rockgate.protocol.remoting.compression import SIZE_MAX

PAGE = (ROOT / "docs/internals/mapping.md").read_text()


def test_the_page_lists_every_system_property() -> None:
    listed = PAGE.split("dictionary.SYSTEM -->")[1].split("<!-- end -->")[0]
    assert re.findall(r"`([^`]+)`", listed) == sorted(dictionary.SYSTEM)


def test_the_page_names_every_property_that_is_made_up() -> None:
    table = PAGE.split("### Added properties")[1].split("\n\n")[1]
    named = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    made_up = (
        dictionary.NAMED,
        dictionary.CODED,
        dictionary.EXACT_KEY,
        dictionary.NULL,
        dictionary.DROPPED,
        dictionary.SKIPPED,
    )
    assert named == [name.decode() for name in made_up]
    assert all(name.startswith(dictionary.OWN) for name in made_up)
    assert COMPRESSED_BODY.decode() in PAGE


def test_the_page_gives_the_bounds() -> None:
    for bound in (dictionary.SIZE_MAX, address.INDEX_MAX + 1, messages.CHUNK_COUNT):
        assert f"{bound:,}" in PAGE
    assert messages.CHUNK_BYTES == 1 << 20 and "about 1 MiB" in PAGE
    assert (LIGHT.compressed_bytes_max, LIGHT.inflated_bytes_max) == (32 << 10, 1 << 20)
    assert (
        f"(32 KiB compressed, 1 MiB uncompressed, {LIGHT.records_max:,} records or headers)" in PAGE
    )
    assert compressed_bodies.INFLATED_BYTES_MAX == 256 << 10 and "256 KiB" in PAGE
    assert (
        compressed_bodies.COMPRESSED_BYTES_MAX == 32 << 10 and "compressed body of 32 KiB" in PAGE
    )
    assert compressed_bodies.CACHE_BYTES_MAX == SIZE_MAX == 64 << 20 and "at most 64 MiB" in PAGE
    assert compressed_bodies.AT_ONCE_MAX == 2 and "two at a time" in PAGE


def test_the_page_draws_the_address_as_it_is() -> None:
    assert address.POSITION_BITS == 44 and "63   62 … 44                       43 … 0" in PAGE


def test_the_page_has_the_names_as_they_are() -> None:
    table = PAGE.split("### Names")[1].split("\n\n")[1]
    for store, rocketmq in re.findall(r"^\| `(\S+)` \| `(\S+)` \|", table, re.MULTILINE):
        assert names.to_rocketmq(store) == rocketmq.replace("\\|", "|")
    assert f"over {names.NAME_SIZE_MAX} bytes" in table
