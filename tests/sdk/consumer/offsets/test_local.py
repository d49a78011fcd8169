"""Progress of a broadcasting group: a crash at any step leaves one whole file."""

from pathlib import Path

import pytest

from rockgate.sdk.consumer.offsets.local import LocalOffsets, OffsetsDamaged
from rockgate.sdk.results import Queue

FIRST, SECOND = Queue("orders", "a", 0), Queue("orders", "b", 3)
APACHES = (
    '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"a",\n\t\t\t"queueId":0,\n\t\t\t"topic":"orders"\n'
    "\t\t}:42\n\t}\n}"
)
"""As Apache's client writes it."""


def test_the_first_start_knows_nothing(tmp_path: Path) -> None:
    assert LocalOffsets(tmp_path / "client" / "group").load() == {}


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "client" / "group"
    LocalOffsets(folder).save({FIRST: 1, SECOND: 2**40})
    assert LocalOffsets(folder).load() == {FIRST: 1, SECOND: 2**40}


def test_the_file_of_apaches_client_is_read(tmp_path: Path) -> None:
    (tmp_path / "offsets.json").write_text(APACHES, encoding="utf-8")
    assert LocalOffsets(tmp_path).load() == {FIRST: 42}


@pytest.mark.parametrize("damage", [b"", b"{", b'{"offsetTable":3}', b"\xff" * 10])
def test_a_damaged_file_is_replaced_by_its_backup(tmp_path: Path, damage: bytes) -> None:
    offsets = LocalOffsets(tmp_path)
    offsets.save({FIRST: 1})
    offsets.save({FIRST: 2})
    offsets.path.write_bytes(damage)
    assert offsets.load() == {FIRST: 1}


def test_two_damaged_files_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    offsets = LocalOffsets(tmp_path)
    offsets.save({FIRST: 1})
    offsets.save({FIRST: 2})
    for path in tmp_path.iterdir():
        path.write_bytes(b"{")
    with pytest.raises(OffsetsDamaged, match=r"Remove .*offsets\.json"):
        offsets.load()


@pytest.mark.parametrize("step", range(4))
def test_a_crash_at_any_step_leaves_what_was_saved_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    offsets = LocalOffsets(tmp_path)
    offsets.save({FIRST: 1})
    crash_at(step, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        offsets.save({FIRST: 2})
    monkeypatch.undo()
    assert offsets.load() in ({FIRST: 1}, {FIRST: 2})
    offsets.save({FIRST: 3})
    assert offsets.load() == {FIRST: 3}


def crash_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends at one of: opening, fsync, keeping the old file, putting in the new one."""
    calls = 0

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def second(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        self.rename(target)
        return target

    match step:
        case 0:
            monkeypatch.setattr(Path, "open", crash)
        case 1:
            monkeypatch.setattr("os.fsync", crash)
        case 2:
            monkeypatch.setattr(Path, "replace", crash)
        case _:
            monkeypatch.setattr(Path, "replace", second)
