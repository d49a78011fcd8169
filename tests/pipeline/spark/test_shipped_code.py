"""What runs in the Python of a Connect server: files, asked for as text."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rockgate.pipeline.files.task import qualified
from rockgate.pipeline.spark import shipped_code


def ask(what: str, *about: Any) -> Any:
    answer = json.loads(shipped_code.done(json.dumps([what, *about])))
    assert "failure" not in answer, answer
    return answer["result"]


@pytest.fixture(params=["file:", "file://"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder's address, once for Python's own library and once for pyarrow."""
    if request.param == "file://":
        monkeypatch.setattr(
            shipped_code, "Local", lambda: shipped_code.Elsewhere(f"file://{tmp_path}")
        )
    return f"{request.param}{tmp_path}"


def test_texts_are_written_read_moved_and_deleted(root: str, tmp_path: Path) -> None:
    assert ask("exists", f"{root}/a/one") is False
    ask("write", f"{root}/a/one", "1")
    ask("write", f"{root}/a/one", "first")
    ask("write", f"{root}/a/two", "2")
    assert ask("read", f"{root}/a/one") == "first"
    assert sorted(ask("below", root)) == [["a/one", 5], ["a/two", 1]]
    assert ask("folders", root) == ["a"]
    assert ask("below", f"{root}/nowhere") == []
    assert ask("folders", f"{root}/nowhere") == []
    move = [f"{root}/a/one", f"{root}/b/c/two"]
    ask("rename", move, [f"{root}/a/two", f"{root}/b/c/two"])
    assert ask("read", f"{root}/b/c/two") == "2"
    # A task that is done again finds its work done.
    ask("rename", [f"{root}/a/two", f"{root}/b/c/two"])
    ask("delete", f"{root}/b", f"{root}/nothing")
    assert ask("below", root) == []


def test_a_checksum_of_hadoop_goes_with_its_file(tmp_path: Path) -> None:
    for name in ("old", ".old.crc", "new", ".new.crc"):
        (tmp_path / name).write_text(name)
    ask("rename", [f"file:{tmp_path}/old", f"file:{tmp_path}/new"])
    assert (tmp_path / ".new.crc").read_text() == ".old.crc"
    assert ask("below", f"file:{tmp_path}") == [["new", 3]]
    ask("write", f"file:{tmp_path}/new", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]
    (tmp_path / ".new.crc").write_text("x")
    ask("delete", f"file:{tmp_path}/new")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_comes_back_as_text(tmp_path: Path) -> None:
    answer = json.loads(shipped_code.done(json.dumps(["read", f"file:{tmp_path}/none"])))
    assert answer["failure"].startswith("FileNotFoundError")


def test_it_is_pickled_whole_and_runs_where_nothing_of_ours_is() -> None:
    from pyspark import cloudpickle

    packed = cloudpickle.dumps(shipped_code.whole(shipped_code.done))
    assert pickle.loads(packed) is not shipped_code.done
    program = f"""
import pickle, sys
done = pickle.loads({packed!r})
assert "rockgate" not in sys.modules
print(done('["exists", "file:/"]'))
"""
    packages = str(Path(cloudpickle.__file__).parents[2])
    done = subprocess.run(
        [str(Path(sys.executable).resolve()), "-c", program],
        env={"PYTHONPATH": packages},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == {"result": True}, done.stderr


def test_a_path_without_a_scheme_is_a_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert qualified("kept") == "file:/kept"
    assert qualified("/a/../b/") == "file:/b"
    assert qualified("file:///b") == "file:/b"
    assert qualified("s3a://bucket/kept/") == "s3a://bucket/kept"
