"""Directories that are made once."""

import os
from pathlib import Path

import pytest
from bench.peers.cached_directory import cached_directory, user_cache


def test_a_directory_is_filled_once_and_found_again(tmp_path: Path) -> None:
    calls: list[Path] = []

    def fill(aside: Path) -> None:
        calls.append(aside)
        (aside / "file").write_text("x")

    target = tmp_path / "cache" / "entry"
    assert cached_directory(target, fill) == cached_directory(target, fill) == target
    assert (target / "file").read_text() == "x"
    assert len(calls) == 1 and not calls[0].exists()


def test_what_could_not_be_filled_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def fail(aside: Path) -> None:
        (aside / "half").write_text("x")
        raise OSError("no room")

    target = tmp_path / "entry"
    with pytest.raises(OSError, match="no room"):
        cached_directory(target, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["entry.lock"]
    assert cached_directory(target, lambda aside: None).is_dir()


def test_the_cache_is_the_user_s(tmp_path: Path) -> None:
    assert user_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "rockgate"
    assert user_cache({}) == Path(os.path.expanduser("~")) / ".cache" / "rockgate"
