"""Getting the connector: a named folder, the cache, Maven, or Spark's own way, in that order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rockgate.pipeline.errors import NotInstalled
from rockgate.pipeline.spark import connector


def a_folder_of_jars(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "spark-sql-kafka-0-10_2.13-4.0.0.jar").touch()
    (folder / "kafka-clients-3.9.0.jar").touch()
    return folder


def maven_that(folder: Path, script: str) -> dict[str, str]:
    """An environment whose only `mvn` is a script."""
    folder.mkdir()
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": os.pathsep.join([str(folder), "/usr/bin", "/bin"])}


COPYING = """
for word in "$@"; do case $word in
  -DoutputDirectory=*) out=${word#*=};;
  -Dconnector.version=*) version=${word#*=};;
esac; done
touch "$out/spark-sql-kafka-0-10_2.13-$version.jar"
"""


def test_a_named_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = a_folder_of_jars(tmp_path / "jars")
    found = connector.configuration("4.0.0", {connector.JARS_VARIABLE: str(folder)})
    names = [Path(each).name for each in found["spark.jars"].split(",")]
    assert names == ["kafka-clients-3.9.0.jar", "spark-sql-kafka-0-10_2.13-4.0.0.jar"]


def test_a_named_folder_without_a_connector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="No Spark Kafka connector found in"):
        connector.configuration("4.0.0", {connector.JARS_VARIABLE: str(tmp_path)})


def test_without_maven_spark_fetches_it_itself(tmp_path: Path) -> None:
    found = connector.configuration("4.0.0", {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert found == {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"}


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path) -> None:
    environ = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    a_folder_of_jars(connector.jar_directory("4.0.0", environ))
    assert "spark-sql-kafka" in connector.configuration("4.0.0", environ)["spark.jars"]


def test_maven_fills_the_cache_once(tmp_path: Path) -> None:
    environ = maven_that(tmp_path / "bin", COPYING) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = connector.configuration("4.2.0", environ)
    assert found["spark.jars"].endswith("spark-sql-kafka-0-10_2.13-4.2.0.jar")
    (tmp_path / "bin" / "mvn").write_text("#!/bin/sh\nexit 1\n")
    assert connector.configuration("4.2.0", environ) == found


def test_a_maven_that_fails_leaves_no_cache_and_is_quoted(tmp_path: Path) -> None:
    environ = maven_that(tmp_path / "bin", "echo no route to host; exit 1")
    environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    with pytest.raises(NotInstalled, match=r"could not fetch Spark's Kafka connector:\nno route"):
        connector.configuration("4.0.0", environ)
    assert not connector.jar_directory("4.0.0", environ).exists()


def test_a_spark_that_no_one_has_tried_is_refused() -> None:
    with pytest.raises(NotInstalled, match=r"No connector is known for Spark 3\.5\.1"):
        connector.configuration("3.5.1", {"PATH": ""})
