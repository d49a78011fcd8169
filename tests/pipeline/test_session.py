"""A session's settings: the connector is in, dates are UTC, and what the user says wins."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from rockgate.pipeline import session
from rockgate.pipeline.errors import BadOption, NotInstalled

NO_MAVEN = {"PATH": "", "XDG_CACHE_HOME": "nowhere"}


def test_a_local_session_keeps_to_this_machine_and_a_cluster_s_does_not() -> None:
    local = session.settings("4.0.0", "local[2]", {}, NO_MAVEN)
    assert local["spark.driver.host"] == "127.0.0.1"
    cluster = session.settings("4.0.0", "spark://master:7077", {}, NO_MAVEN)
    assert "spark.driver.host" not in cluster
    assert "spark.sql.shuffle.partitions" not in cluster
    for found in (local, cluster):
        assert found["spark.sql.session.timeZone"] == "UTC"
        assert "spark-sql-kafka" in found["spark.jars.packages"]


def test_what_the_user_says_wins() -> None:
    found = session.settings("4.0.0", "local[2]", {"spark.driver.host": "me"}, NO_MAVEN)
    assert found["spark.driver.host"] == "me"


def test_a_missing_pyspark_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(session, "version", missing)
    with pytest.raises(NotInstalled, match=r"pip install 'rockgate\[pipeline\]'"):
        session.open_session("x")


def test_an_address_of_spark_connect_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(BadOption, match=r"sc://host:15002 is an address of Spark Connect.*master"):
        session.open_session("x", master="sc://host:15002")
