from pathlib import Path

import pytest
from tests.jdk import find_jdk, major_version


def fake_java(home: Path, says: str) -> Path:
    """A `java` that prints `says` where Java prints its version, and does nothing else."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("no such thing", None),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(
    tmp_path: Path, says: str, version: int | None
) -> None:
    assert major_version(fake_java(tmp_path, says)) == version


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert major_version(tmp_path / "bin" / "java") is None


def test_java_home_is_asked_before_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "seventeen", 'openjdk version "17.0.1"')
    fake_java(tmp_path / "twentyone", 'openjdk version "21.0.1"')
    environ = {"JAVA_HOME": f"{tmp_path}/seventeen", "PATH": f"{tmp_path}/twentyone/bin"}
    found = find_jdk(environ)
    assert found
    assert (found.home, found.version) == (tmp_path / "seventeen", 17)


@pytest.mark.parametrize("version", ["11.0.2", "25.0.1"])
def test_a_jdk_of_another_version_is_passed_over_for_the_one_on_path(
    tmp_path: Path, version: str
) -> None:
    fake_java(tmp_path / "other", f'openjdk version "{version}"')
    fake_java(tmp_path / "right", 'openjdk version "21.0.1"')
    environ = {"JAVA_HOME": f"{tmp_path}/other", "PATH": f"{tmp_path}/right/bin"}
    found = find_jdk(environ)
    assert found
    assert found.home == tmp_path / "right"


def test_links_on_path_are_followed_to_the_jdk(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "jdk", 'openjdk version "17.0.1"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(java)
    found = find_jdk({"PATH": f"{tmp_path}/bin"})
    assert found
    assert found.home == tmp_path / "jdk"


def test_nothing_is_found_in_an_empty_environment() -> None:
    assert find_jdk({"PATH": "", "JAVA_HOME": ""}) is None
