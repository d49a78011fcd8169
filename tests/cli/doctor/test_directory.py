from dataclasses import replace
from pathlib import Path

import pytest

from rockgate.cli.doctor import directory
from rockgate.cli.doctor.finding import Status
from rockgate.store.config import StoreConfig

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / {folder}/mem rw - tmpfs tmpfs rw
31 22 0:27 / {folder}/far\\040away rw - nfs4 server:/x rw
"""


def by_name(path: Path, mounts: Path = Path("/nonexistent")) -> dict[str, Status]:
    return {each.check: each.status for each in directory.check(path, StoreConfig(), mounts)}


def test_a_directory_that_does_not_exist_is_created_at_the_start(tmp_path: Path) -> None:
    assert by_name(tmp_path / "a" / "b")["data directory"] == "ok"
    assert not (tmp_path / "a").exists()


def test_a_file_in_its_place_ends_the_list(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert by_name(tmp_path / "data") == {"data directory": "problem"}


def test_a_path_below_a_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert by_name(tmp_path / "data" / "below") == {"data directory": "problem"}


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [("disk", "ok", "ext4"), ("mem", "warning", "tmpfs"), ("far away", "warning", "nfs4")],
)
def test_a_directory_in_memory_or_over_a_network_is_worth_a_warning(
    tmp_path: Path, name: str, status: str, kind: str
) -> None:
    (tmp_path / name).mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.format(folder=tmp_path.resolve()))
    *_, found = directory.check(tmp_path / name, StoreConfig(), mounts)
    assert (found.check, found.status) == ("file system", status)
    assert kind in found.found


def test_a_disk_over_the_limit_or_too_small_for_a_segment_is_a_problem(tmp_path: Path) -> None:
    full = replace(StoreConfig(), disk_used_percent_max=0)
    assert directory.space(tmp_path, full).status == "problem"
    huge = replace(StoreConfig(), disk_used_percent_max=101, segment_bytes=1 << 60)
    assert directory.space(tmp_path, huge).status == "problem"
    small = replace(StoreConfig(), disk_used_percent_max=101, segment_bytes=1 << 20)
    assert directory.space(tmp_path, small).status == "ok"
