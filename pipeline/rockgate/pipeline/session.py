"""A Spark session that has the Kafka connector, on this machine or on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from rockgate.pipeline import connector
from rockgate.pipeline.errors import BadOption, NotInstalled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL_ADVICE = "install it with: pip install 'rockgate[pipeline]'"
JAVA_ADVICE = (
    "Spark needs a JDK 17 or 21 on PATH or in JAVA_HOME "
    "(on Debian: apt-get install openjdk-17-jdk-headless)"
)
LOCAL_MASTER = "local[*]"
CONNECT_SCHEME = "sc://"
# Set by spark-submit: the session's settings are then its business, the master above all.
SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"


def spark_version() -> str:
    """The version of pyspark that is installed; NotInstalled says how to get one."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise NotInstalled(f"pyspark is not installed; {INSTALL_ADVICE}") from None


def settings(
    spark: str, master: str, extra: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The settings of a session on `master`; `extra` wins."""
    found = {
        # Dates of folders and windows must not depend on where the driver stands.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        **connector.configuration(spark, environ),
    }
    if master.startswith("local"):
        # On one machine nobody else needs to reach the driver, and shuffles are small.
        found["spark.driver.host"] = "127.0.0.1"
        found["spark.driver.bindAddress"] = "127.0.0.1"
        found["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
    return {**found, **extra}


def has_session() -> bool:
    """Whether this process has a session already."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def open_session(
    name: str, *, master: str | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session called `name`: the running one if there is one, else a new one.

    Under spark-submit the master and the connector are given by its own flags.
    """
    installed = spark_version()
    if master is not None and master.startswith(CONNECT_SCHEME):
        raise BadOption(
            f"{master} is an address of Spark Connect, whose client has no driver of its own; "
            "give the cluster's master (spark://host:7077, yarn, k8s://…), or use spark-submit"
        )
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName(name)
    if SUBMITTED_VARIABLE in os.environ:
        chosen = dict(extra or {})
    else:
        master = master or LOCAL_MASTER
        builder = builder.master(master)
        chosen = settings(installed, master, extra or {})
        if master.startswith("local"):
            # Without it Spark looks for an address of this machine, and warns of what it finds.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Executors run Python functions with the interpreter that the driver has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise NotInstalled(f"Spark did not start: {error}; {JAVA_ADVICE}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session
