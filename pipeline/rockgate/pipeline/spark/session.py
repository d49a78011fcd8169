"""A Spark session that has the Kafka connector: on this machine, a cluster, or over Connect."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from rockgate.pipeline.errors import NotInstalled
from rockgate.pipeline.spark import connector, remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL_ADVICE = "Install it with: pip install 'rockgate[pipeline]'"
JAVA_ADVICE = (
    "Spark needs a JDK 17 or 21 on PATH or in JAVA_HOME "
    "(on Debian: apt-get install openjdk-17-jdk-headless)"
)
LOCAL_MASTER = "local[*]"
# Set by spark-submit: the session's settings are then its business, the master above all.
SECRET_NAMES = "(?i)secret|password|passphrase|token|access[.]?key|jaas|keystore[.]key|url"
"""What options are called whose values Spark hides in plans, its log and its pages."""
QUERY_LOGGERS = ("org.apache.spark.sql.execution.streaming.MicroBatchExecution",)
SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"


def spark_version() -> str:
    """The version of pyspark that is installed; NotInstalled says how to get one."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise NotInstalled(f"pyspark is not installed. {INSTALL_ADVICE}") from None


def settings(
    spark: str, master: str, extra: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The settings of a session on `master`; `extra` wins."""
    found = {
        # Dates of folders and windows must not depend on where the driver runs.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Kafka's clients have their login in one option whose name does not tell.
        "spark.redaction.regex": SECRET_NAMES,
        "spark.sql.redaction.options.regex": SECRET_NAMES,
        **connector.configuration(spark, environ),
    }
    if master.startswith("local"):
        # On one machine no other host needs to reach the driver, and shuffles are small.
        found["spark.driver.host"] = "127.0.0.1"
        found["spark.driver.bindAddress"] = "127.0.0.1"
        found["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
    return {**found, **extra}


def is_of_this_machine(master: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a session would run here, so that a path without a scheme is one of this machine."""
    if SUBMITTED_VARIABLE in environ or remote.address_for(master, environ) is not None:
        return False
    return (master or LOCAL_MASTER).startswith("local[") or master == "local"


def has_session() -> bool:
    """Whether this process has a session already."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def open_session(
    name: str, *, master: str | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session called `name`: the running one if there is one, else a new one.

    `master` may be a Connect address (sc://host:port); it defaults to SPARK_REMOTE.
    Under spark-submit the master and the connector are given by its own flags.
    """
    installed = spark_version()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    address = None if SUBMITTED_VARIABLE in os.environ else remote.address_for(master)
    if address is not None:
        return remote.open_remote(name, address, installed, extra or {})
    if master is not None:
        # An explicit value wins; Spark itself rejects both.
        os.environ.pop(remote.ADDRESS_VARIABLE, None)
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
        raise NotInstalled(f"Spark did not start: {error}. {JAVA_ADVICE}") from error
    session.sparkContext.setLogLevel("ERROR")
    _hush(session)
    return session


def _hush(session: SparkSession) -> None:
    """Silence what Spark logs of a query that ended: the job reports it in one line.

    A step that is refused because the job is stopping is a failure to Spark, too, and worth seventy
    lines of stack trace to it.
    """
    log4j: Any = session.sparkContext._jvm.org.apache.logging.log4j
    for name in QUERY_LOGGERS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def where(session: SparkSession) -> str:
    """A description of where a session runs; empty if it has no web page."""
    if remote.is_remote(session):
        return f"Spark Connect server, Spark {session.version}"
    pages = session.sparkContext.uiWebUrl
    return f"Spark UI: {pages}" if pages else ""
