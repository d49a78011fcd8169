"""A peer's directory: who made it, and what is left of it."""

from pathlib import Path
from typing import Self

import pytest
from bench.peers.peer import Peer


class Still(Peer):
    """A peer without a process."""

    is_up = False

    def start(self, seconds_max: float = 0.0) -> Self:
        self.is_up = True
        return self

    def stop(self) -> None:
        self.is_up = False


def test_a_directory_made_for_one_run_goes_with_it() -> None:
    with Still("still", None) as peer:
        assert peer.is_up
        assert peer.directory.is_dir()
    assert not peer.is_up
    assert not peer.directory.exists()


def test_the_directory_of_a_run_that_failed_stays_for_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    peer = Still("still", None)
    with pytest.raises(ValueError, match="a failure"), peer:
        raise ValueError("a failure")
    assert not peer.is_up
    assert peer.directory.is_dir()


def test_a_directory_of_the_callers_stays(tmp_path: Path) -> None:
    with Still("still", tmp_path) as peer:
        assert peer.directory == tmp_path.resolve()
    assert tmp_path.is_dir()
