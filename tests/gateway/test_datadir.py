import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.server import environment

from rockgate.gateway.datadir import LOCK_NAME, DataDirectory
from rockgate.gateway.errors import DirectoryInUse, StartError


def test_the_directory_is_made_and_names_its_owner(tmp_path: Path) -> None:
    directory = DataDirectory.claim(tmp_path / "deep" / "data")
    assert (directory.path / LOCK_NAME).read_text() == f"{os.getpid()}\n"
    directory.release()


def test_a_second_claim_is_refused_with_the_directory_and_the_owner(tmp_path: Path) -> None:
    first = DataDirectory.claim(tmp_path)
    with pytest.raises(DirectoryInUse) as caught:
        DataDirectory.claim(tmp_path)
    assert caught.value.pid == os.getpid()
    assert str(tmp_path) in str(caught.value) and str(os.getpid()) in str(caught.value)
    first.release()
    DataDirectory.claim(tmp_path).release()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    directory = DataDirectory.claim(tmp_path)
    directory.release()
    directory.release()


def test_a_killed_owner_leaves_no_claim(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal\n"
        "from rockgate.gateway.datadir import DataDirectory\n"
        f"DataDirectory.claim(pathlib.Path({str(tmp_path)!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert (tmp_path / LOCK_NAME).exists()
    DataDirectory.claim(tmp_path).release()


def test_a_path_that_cannot_be_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot use data directory"):
        DataDirectory.claim(tmp_path / "file" / "data")
    with pytest.raises(StartError, match="cannot use data directory"):
        DataDirectory.claim(tmp_path / "file")
