"""What `pip install rockgate` puts on a machine: built offline here, opened, and run bare.

The bare interpreter is this one without its site-packages (`-S`): it sees the standard library,
the wheel and what the wheel's base dependencies bring, as a user of the SDK alone would.
"""

import email
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.house.checkout import SOURCE_ROOMS, python_files

# The whole price of the SDK. A third name here is a decision, not a convenience.
BASE_DEPENDENCIES = {"construct", "msgspec"}

IMPORT_ALL_OF_SDK = """
import importlib, pkgutil
import rockgate.protocol.remoting, rockgate.sdk
for package in (rockgate.sdk, rockgate.protocol.remoting):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "rockgate.sdk.faststream":
            importlib.import_module(module.name)
"""


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content and its base dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name in BASE_DEPENDENCIES:
        installed = distribution(name)
        for top in {path.parts[0] for path in installed.files or () if path.parts[0] != ".."}:
            (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    return folder


def test_the_wheel_holds_every_source_file_of_the_rooms(wheel: Path) -> None:
    rooms = (Path(*path.parts[1:]) for path in python_files(*SOURCE_ROOMS))
    # Beside its part of the package a room may hold examples for readers.
    expected = {str(path) for path in rooms if path.parts[0] == "rockgate"}
    assert expected <= names_in(wheel)


@pytest.mark.parametrize("room", SOURCE_ROOMS)
def test_the_wheel_says_that_each_room_is_typed(wheel: Path, room: str) -> None:
    assert f"rockgate/{room}/py.typed" in names_in(wheel)


def test_the_wheel_holds_the_package_and_its_metadata_and_nothing_else(wheel: Path) -> None:
    names = names_in(wheel)
    assert {re.split(r"[-/]", name)[0] for name in names} == {"rockgate"}
    assert "rockgate/__init__.py" not in names
    assert [name for name in names if "tests" in name or "/test_" in name] == []


def test_the_base_install_has_few_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {re.split(r"[<>=~! ]", line)[0] for line in required} == BASE_DEPENDENCIES


@pytest.mark.parametrize("name", sorted(BASE_DEPENDENCIES))
def test_a_base_dependency_brings_no_other(name: str) -> None:
    assert [line for line in distribution(name).requires or () if "extra ==" not in line] == []


def test_the_sdk_imports_with_the_base_install_alone(bare: Path) -> None:
    result = run_bare(bare, "-c", IMPORT_ALL_OF_SDK)
    assert result.returncode == 0, result.stderr


def test_what_needs_an_extra_says_what_to_install(bare: Path) -> None:
    result = run_bare(bare, "-c", "import rockgate.sdk.faststream")
    assert 'pip install "rockgate[faststream]"' in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(("arguments", "extra"), [([], "cli"), (["serve"], "server")])
def test_the_command_without_its_extra_exits_2_and_says_what_to_install(
    bare: Path, arguments: list[str], extra: str
) -> None:
    result = run_bare(bare, "-m", "rockgate.cli", *arguments)
    assert result.returncode == 2, result.stderr
    assert f'pip install "rockgate[{extra}]"' in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_need_no_extra(bare: Path, flag: str) -> None:
    result = run_bare(bare, "-m", "rockgate.cli", flag)
    assert (result.returncode, result.stderr) == (0, "")
    assert "rockgate" in result.stdout


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def run_bare(bare: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=bare,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(bare)},
        capture_output=True,
        text=True,
    )
