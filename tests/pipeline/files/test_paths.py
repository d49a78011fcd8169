"""Paths are looked at before Spark starts, and addresses of other file systems are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.files import paths


def test_a_folder_that_is_there_or_can_be_made_is_no_error(tmp_path: Path) -> None:
    for text in (str(tmp_path), str(tmp_path / "a" / "b"), f"file:{tmp_path}/c"):
        paths.check_folder(text, "--into")


@pytest.mark.parametrize("text", ["s3a://bucket/x", "hdfs://name/x", "abfss://c@h/x"])
def test_addresses_of_other_file_systems_are_left_to_spark(text: str) -> None:
    paths.check_folder(text, "--into")
    paths.check_present(text, "ARCHIVE")


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for text in (str(file), f"file://{file}"):
        with pytest.raises(
            BadOption, match=r"^Invalid --into: .* is a file, expected a directory\.$"
        ):
            paths.check_folder(text, "--into")
    with pytest.raises(BadOption, match=rf"{file} is a file, not a directory\.$"):
        paths.check_folder(str(file / "below"), "--into")
    with pytest.raises(BadOption, match=r"^Invalid ARCHIVE: .* is a file, expected a directory\.$"):
        paths.check_present(str(file), "ARCHIVE")


def test_a_folder_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the system's answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(BadOption, match=rf"^Invalid --into: {tmp_path} is not writable\.$"):
        paths.check_folder(str(tmp_path / "new"), "--into")


def test_a_report_wants_a_file_in_a_folder_that_is_there(tmp_path: Path) -> None:
    paths.check_file(str(tmp_path / "page.html"), "--report")
    with pytest.raises(BadOption, match=r"^Invalid --report: directory .* does not exist\.$"):
        paths.check_file(str(tmp_path / "nope" / "page.html"), "--report")
    with pytest.raises(BadOption, match=r"is a directory, expected a file\.$"):
        paths.check_file(str(tmp_path), "--report")


def test_an_archive_that_is_not_there_is_reported(tmp_path: Path) -> None:
    paths.check_present(str(tmp_path), "ARCHIVE")
    with pytest.raises(BadOption, match=r"^Invalid ARCHIVE: .* does not exist\.$"):
        paths.check_present(str(tmp_path / "nope"), "ARCHIVE")
