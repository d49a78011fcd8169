import os
from pathlib import Path

import pytest

from rockgate.gateway.runtime.datadir import LOCK_NAME, refuse_if_in_use
from rockgate.gateway.runtime.errors import DirectoryInUse, StartError
from rockgate.store.files.interface import DiskDirectory


def test_a_directory_that_is_not_there_yet_is_free(tmp_path: Path) -> None:
    refuse_if_in_use(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_directory_that_the_store_has_is_refused_with_its_owner(tmp_path: Path) -> None:
    directory = DiskDirectory(tmp_path)
    directory.lock(LOCK_NAME)
    with pytest.raises(DirectoryInUse) as caught:
        refuse_if_in_use(tmp_path)
    assert caught.value.pid == os.getpid()
    assert str(tmp_path) in str(caught.value) and str(os.getpid()) in str(caught.value)
    directory.unlock()
    refuse_if_in_use(tmp_path)


def test_looking_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("999999\n")
    refuse_if_in_use(tmp_path)
    directory = DiskDirectory(tmp_path)
    directory.lock(LOCK_NAME)
    directory.unlock()


def test_a_path_that_cannot_be_a_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=r"Cannot use data directory .*Not a directory"):
        refuse_if_in_use(tmp_path / "file")
