"""Spark's stack traces in a clause."""

import pytest

from rockgate.pipeline.errors import (
    DataLost,
    JobFailed,
    NotReachable,
    PipelineError,
    UnknownTopic,
)
from rockgate.pipeline.spark.failures import explained

LOST = (
    "Some data may have been lost because they are not available in Kafka any more;\n"
    "Reason: Could not read records in offset [10, 40) for topic partition t-0\n"
    "with consumer group g"
)
UNKNOWN = (
    "[STREAM_FAILED] Query terminated: java.util.concurrent.ExecutionException\n\tat x\n"
    "Caused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
    "This server does not host this topic-partition."
)
SILENT = (
    "Job aborted\nCaused by: org.apache.kafka.common.errors.TimeoutException: "
    "Topic t not present in metadata after 60000 ms."
)
FULL = "Job aborted\nCaused by: a.B: outer\n\tat q\nCaused by: java.io.IOException: No space left"


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (LOST, DataLost, "offset [10, 40) for topic partition t-0"),
        (UNKNOWN, UnknownTopic, "UnknownTopicOrPartitionException: This server does not host"),
        (SILENT, NotReachable, "TimeoutException: Topic t not present"),
        (FULL, JobFailed, "IOException: No space left"),
        ("", JobFailed, "unknown reason"),
    ],
)
def test_a_text_of_spark_s_becomes_a_clause(
    text: str, kind: type[PipelineError], told: str
) -> None:
    error = explained(text)
    assert type(error) is kind
    assert told in str(error)
    assert "\n" not in str(error)
