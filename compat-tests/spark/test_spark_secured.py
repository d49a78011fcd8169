"""Spark where TLS and a login are demanded: kafka.security.protocol=SASL_SSL, and refusals."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from behaviours.login import Login, java_properties
from behaviours.secured_server import SecuredServer
from behaviours.steps import new_topic
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark import MARKS

pytestmark = MARKS
CLIENT = f"spark {version('pyspark')}"


def options(secured: SecuredServer, login: Login) -> dict[str, str]:
    """The options of source and sink."""
    found = {"kafka.bootstrap.servers": str(secured.address(login))}
    found |= {f"kafka.{name}": value for name, value in java_properties(login).items()}
    # A broker that refuses is not asked for two minutes.
    limits = ("default.api.timeout.ms", "request.timeout.ms", "max.block.ms")
    return found | {f"kafka.{name}": "30000" for name in limits}


def rows(spark: SparkSession, count: int) -> DataFrame:
    """Numbers as records."""
    return spark.range(count).selectExpr("cast(id as string) as value")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_batches_and_streams_are_written_and_read_with_a_login(
    spark: SparkSession, secured: SecuredServer, tmp_path: Path, mechanism: str
) -> None:
    login, topic = replace(secured.new_user("sam"), mechanism=mechanism), new_topic("spark-sasl")
    secured.allow(login, topic)
    # Spark names its groups itself.
    secured.allow_groups(login, "spark-kafka-")
    given = options(secured, login)
    rows(spark, 20).write.format("kafka").options(**given, topic=topic).save()
    source = {**given, "subscribe": topic, "startingOffsets": "earliest"}
    found = spark.read.format("kafka").options(**source).load()
    assert sorted(int(row.value) for row in found.collect()) == list(range(20))
    stream = spark.readStream.format("kafka").options(**source).load()
    query = (
        stream.writeStream.format("memory")
        .queryName(f"secured_{mechanism.lower().replace('-', '_')}")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert spark.table(query.name).count() == 20


def test_a_wrong_password_and_a_missing_grant_are_told(
    spark: SparkSession, secured: SecuredServer
) -> None:
    login, topic = secured.new_user("sam"), new_topic("spark-others")
    secured.allow(secured.new_user("emil"), topic)
    for given, text in (
        (replace(login, password="guess"), "Authentication failed"),
        (login, "Not authorized to access topics"),
    ):
        with pytest.raises((PySparkException, Py4JJavaError), match=text):
            rows(spark, 1).write.format("kafka").options(
                **options(secured, given), topic=topic
            ).save()
