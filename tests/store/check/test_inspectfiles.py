"""Checks of single files beside the log; test_inspect.py damages whole directories."""

from __future__ import annotations

import pytest
from tests.store.inspected import furnished

from rockgate.store.check.inspectfiles import Finding, MappedFile, check_snapshots, read_checkpoint
from rockgate.store.testing.memory_files import MemoryDisk


def test_a_finding_reads_as_one_sentence() -> None:
    finding = Finding("data/commitlog/0", 77, "body checksum mismatch, stored 12345678")
    assert str(finding) == (
        "data/commitlog/0 is damaged at position 77: body checksum mismatch, stored 12345678."
    )


def test_an_inspected_file_is_read_and_never_written() -> None:
    directory = MemoryDisk().root()
    directory.create("a").write(0, b"content")
    file = MappedFile(directory, "a")
    assert (file.size(), file.read(3, 100), file.read(9, 1)) == (7, b"tent", b"")
    with pytest.raises(AssertionError):
        file.write(0, b"x")
    file.sync()
    file.close()


def test_an_empty_file_has_no_bytes() -> None:
    directory = MemoryDisk().root()
    directory.create("a")
    file = MappedFile(directory, "a")
    assert (file.size(), file.read(0, 10)) == (0, b"")
    file.close()


def test_a_directory_without_a_checkpoint_has_none() -> None:
    assert read_checkpoint(MemoryDisk().root()) == (None, [])


@pytest.mark.parametrize("size", [0, 30, 52, 4096, 4100])
def test_a_checkpoint_that_ends_early_is_found(size: int) -> None:
    keeping = furnished()
    root = keeping.disk.root()
    content = root.open("checkpoint").read(0, size)
    root.remove("checkpoint")
    root.create("checkpoint").write(0, content)
    checkpoint, findings = read_checkpoint(root)
    assert findings
    assert (checkpoint is None) == (size < 52 or content[:8] == bytes(8))


def test_snapshots_under_other_names_are_not_looked_at() -> None:
    keeping = furnished()
    directory = keeping.disk.root().child("snapshots")
    directory.create("00000000000000000000-0000000001.damaged").write(0, b"x")
    directory.create("00000000000000000000-0000000009.new").write(0, b"x")
    found = list(check_snapshots(directory))
    assert len(found) == 2
    assert all(header is not None and damage is None for _, header, damage in found)


def test_a_snapshot_of_a_later_release_is_no_damage_that_mends_itself() -> None:
    keeping = furnished()
    directory = keeping.disk.root().child("snapshots")
    name = directory.names()[0]
    import struct
    from zlib import crc32

    mapping = directory.map(name, writable=True)
    size = struct.unpack_from(">I", mapping.view, 12)[0]
    mapping.view[8:10] = (99).to_bytes(2, "big")
    checksum = crc32(mapping.view[: size - 4])
    mapping.view[size - 4 : size] = struct.pack(">I", checksum)
    [(_, header, damage), _] = list(check_snapshots(directory))
    assert header is None
    assert damage is not None
    assert not damage.is_repairable
    assert "99" in damage.reason
