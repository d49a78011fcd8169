"""Fetching, with a shell script in place of Maven."""

import os
from pathlib import Path

import pytest
from bench.peers import jars, tools
from bench.peers.errors import FetchFailed, ToolMissing

FAKE_JAVA = "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"
BRINGS = """\
#!/bin/sh
echo "$@" >> "$CALLS"
for each in "$@"; do case $each in -DoutputDirectory=*) touch "${each#*=}/kafka.jar";; esac; done
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH with a JDK in it."""
    folder = tmp_path / "jdk" / "bin"
    folder.mkdir(parents=True)
    program(folder / "java", FAKE_JAVA)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_the_versions_are_those_of_the_poms() -> None:
    assert jars.version("kafka") == "4.3.1"
    assert jars.version("rocketmq") == "5.5.0"
    assert jars.version("rocketmq-4") == "4.9.7"


def test_the_cache_is_the_users_unless_the_environment_names_another(tmp_path: Path) -> None:
    assert jars.cache_directory({}) == Path.home() / ".cache" / "rockgate" / "peers"
    xdg = {"XDG_CACHE_HOME": str(tmp_path)}
    assert jars.cache_directory(xdg) == tmp_path / "rockgate" / "peers"
    assert jars.cache_directory({**xdg, jars.CACHE_VARIABLE: "elsewhere"}) == Path("elsewhere")


def test_jars_are_brought_once(path: Path, tmp_path: Path) -> None:
    program(path / "mvn", BRINGS)
    found = jars.fetch("kafka", tmp_path / "cache")
    assert found == jars.jar_directory("kafka", tmp_path / "cache")
    assert [each.name for each in found.iterdir()] == ["kafka.jar"]
    assert jars.fetch("kafka", tmp_path / "cache") == found
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_a_failing_maven_is_reported_and_leaves_nothing_behind(path: Path, tmp_path: Path) -> None:
    program(path / "mvn", "#!/bin/sh\necho '[ERROR] no such artifact'\nexit 1\n")
    with pytest.raises(FetchFailed, match=r"(?s)status 1 for kafka:.*no such artifact"):
        jars.fetch("kafka", tmp_path / "cache")
    assert [each.suffix for each in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_maven_that_brings_nothing_is_reported(path: Path, tmp_path: Path) -> None:
    program(path / "mvn", "#!/bin/sh\n")
    with pytest.raises(FetchFailed, match="mvn brought no jar for kafka"):
        jars.fetch("kafka", tmp_path / "cache")


def test_without_maven_the_error_says_what_to_install() -> None:
    with pytest.raises(ToolMissing, match="no mvn found: install Apache Maven"):
        tools.find_maven({"PATH": ""})


def test_without_java_the_error_says_what_to_install() -> None:
    with pytest.raises(ToolMissing, match="no JDK found: install a JDK 17 or 21"):
        tools.find_java({"PATH": ""})
