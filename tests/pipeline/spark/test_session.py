"""A session's settings: the connector is in, dates are UTC, and what the user says wins."""

from __future__ import annotations

import socket
from importlib.metadata import PackageNotFoundError

import pytest

from rockgate.pipeline.errors import BadOption, NotInstalled, NotReachable
from rockgate.pipeline.spark import remote, session

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


def test_a_connect_address_is_taken_from_the_master_or_from_spark_s_variable() -> None:
    named = {"SPARK_REMOTE": "sc://variable"}
    assert remote.address_for("sc://flag:1", named) == "sc://flag:1"
    assert remote.address_for(None, named) == "sc://variable"
    assert remote.address_for("local[2]", named) is None
    assert remote.address_for(None, {"SPARK_REMOTE": "local"}) is None
    assert remote.address_for(None, {}) is None


def test_no_one_at_a_connect_address_is_reported_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS_MAX", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        # One port accepts and says nothing, the other is closed from the second round on.
        for _ in range(2):
            with pytest.raises(NotReachable, match=f"No Spark Connect server responds at .*{port}"):
                remote.open_remote("x", f"sc://127.0.0.1:{port}", "4.0.0", {})
            silent.close()


def test_what_is_no_connect_address_is_reported() -> None:
    with pytest.raises(BadOption, match=r"sc://host:port is not a Spark Connect address"):
        remote.open_remote("x", "sc://host:port", "4.0.0", {})


def test_a_missing_connect_client_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_is_there", lambda name: name != "grpc")
    with pytest.raises(
        NotInstalled, match=r"needs grpc\. .*'rockgate\[pipeline,pipeline-connect\]'"
    ):
        remote.open_remote("x", "sc://127.0.0.1:1", "4.0.0", {})


def test_a_lost_server_is_known_by_what_each_spark_raises() -> None:
    class RetriesExceeded(Exception):
        """Spark 4.0's."""

    assert remote.means_lost(RetriesExceeded("[RETRIES_EXCEEDED]"))
    assert remote.means_lost(RuntimeError("status = StatusCode.UNAVAILABLE"))
    assert not remote.means_lost(RuntimeError("the disk is full"))
