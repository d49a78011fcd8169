"""Sessions with a remote driver: clients of Spark Connect.

A session is opened at `sc://host:port`. That no server responds, that it runs another Spark
or has no Kafka connector, is reported within seconds, with a remedy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rockgate.pipeline.errors import BadOption, NotInstalled, NotReachable
from rockgate.pipeline.spark import connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = "sc://"
ADDRESS_VARIABLE = "SPARK_REMOTE"
ANSWER_SECONDS_MAX = 10
RETRIES_MAX = 6
"""Of a call that fails on its way, over some twenty seconds: a server that comes back later has
forgotten the session."""
INSTALL_ADVICE = "Install it with: pip install 'rockgate[pipeline,pipeline-connect]'"
SESSION_SETTINGS = {
    # Dates of folders and windows must not depend on where the driver runs.
    "spark.sql.session.timeZone": "UTC",
}
_PACKAGES = ("grpc", "grpc_status", "google.rpc", "pandas", "pyarrow", "kafka")


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def address_for(master: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The Connect address: the master, or Spark's environment variable."""
    if master is not None:
        return master if master.startswith(SCHEME) else None
    named = environ.get(ADDRESS_VARIABLE, "")
    return named if named.startswith(SCHEME) else None


def open_remote(name: str, address: str, spark: str, extra: Mapping[str, str]) -> SparkSession:
    """A session of this Spark's client at a Connect server, with the Kafka connector."""
    _check_installed()
    _check_answer(address)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    os.environ.pop(ADDRESS_VARIABLE, None)
    try:
        session = SparkSession.builder.appName(name).remote(address).getOrCreate()
        client: Any = session.client
        client.set_retry_policies([DefaultPolicy(max_retries=RETRIES_MAX, max_backoff=8_000)])
        _check_version(address, session.version, spark)
    except PySparkException as error:
        raise NotReachable(f"{address} rejected the session: {_first_line(error)}") from error
    for key, value in {**SESSION_SETTINGS, **extra}.items():
        try:
            session.conf.set(key, value)
        except PySparkException as error:
            raise BadOption(
                f"Invalid --conf {key}: {_first_line(error)} "
                "Give such settings to the Connect server when it starts."
            ) from error
    _check_connector(session, spark)
    return session


def means_lost(error: BaseException) -> bool:
    """Whether a failed call means that no server responds: Spark 4.0 has a class for that."""
    return type(error).__name__ == "RetriesExceeded" or "UNAVAILABLE" in str(error)


def lost(session: SparkSession) -> NotReachable:
    """What to raise when the server no longer responds; later calls do not wait for it."""
    client: Any = session.client
    client.set_retry_policies([])
    return NotReachable(
        "The Spark Connect server stopped responding. Run the job again once it is back; it "
        "resumes where it was."
    )


def _check_installed() -> None:
    missing = [name for name in _PACKAGES if not _is_there(name)]
    if missing:
        raise NotInstalled(f"Spark Connect's client needs {', '.join(missing)}. {INSTALL_ADVICE}")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _check_answer(address: str) -> None:
    """NotReachable, unless something speaks gRPC at an address: Spark would try for ten minutes."""
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(address).toChannel()
    except (PySparkException, ValueError) as error:
        raise BadOption(
            f"{address} is not a Spark Connect address such as sc://host:15002: {error}"
        ) from None
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS_MAX)
    except grpc.FutureTimeoutError:
        raise NotReachable(
            f"No Spark Connect server responds at {address}. Is it running, and is that its port "
            "(15002 by default)?"
        ) from None
    finally:
        channel.close()


def _check_version(address: str, theirs: str, ours: str) -> None:
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise BadOption(
            f"{address} runs Spark {theirs}, but this client is {ours}. Install "
            f"pyspark=={theirs} here, or start the server with {ours}."
        )


def _check_connector(session: SparkSession, spark: str) -> None:
    # Handing it over with addArtifacts serves one session: its settings cannot be registered twice
    # in a JVM, and each session would load them anew.
    if not _has_connector(session):
        raise NotInstalled(
            "The Connect server has no Kafka connector. Start it with: "
            f"--packages {connector.coordinates(spark)}"
        )


def _has_connector(session: SparkSession) -> bool:
    from pyspark.errors import AnalysisException

    reader = session.read.format("kafka").option("subscribe", "topic")
    try:
        # Analysed only: no connection is made to this address.
        reader.option("kafka.bootstrap.servers", "127.0.0.1:1").load().schema  # noqa: B018
    except AnalysisException:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
