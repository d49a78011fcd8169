"""Topics by pattern: the jobs' own look-ups and Spark's source mean the same ones."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.spark import MARKS, create_topic, new_topic, numbered, send

from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster, Topics

pytestmark = MARKS


def test_a_pattern_means_whole_names(spark: SparkSession, cluster: Cluster) -> None:
    topic = new_topic(cluster.bootstrap)
    for name in (f"a.{topic}", f"{topic}.z"):
        create_topic(cluster.bootstrap, name)
        send(cluster.bootstrap, name, numbered(2))
    send(cluster.bootstrap, topic, numbered(3))
    chosen = Topics(pattern=f"{topic}|not-there")
    with Admin(spark, cluster) as admin:
        assert admin.topics(chosen) == {topic: 1}
    assert kafka.batch(spark, cluster, chosen).count() == 3
