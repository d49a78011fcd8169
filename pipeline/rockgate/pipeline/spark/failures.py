"""Translates failures of Spark: one clause, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rockgate.pipeline.errors import DataLost, JobFailed, NotReachable, PipelineError, UnknownTopic

_LOST = re.compile(r"(Could not read records in offset[^\n]*|Partition\(s\)[^\n]*lost[^\n]*)")
_CAUSE = re.compile(r"Caused by: ([^\n]+)")
_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)+([A-Z]\w*): ")


def explained(text: str) -> PipelineError:
    """The error for a message of Spark's."""
    if "data may have been lost" in text or "KAFKA_DATA_LOSS" in text:
        lost = _LOST.search(text)
        return DataLost(
            f"Records were deleted before they were read: {lost[1] if lost else root(text)}. "
            "Use --allow-data-loss to continue with the remaining ones."
        )
    if "UnknownTopicOrPartition" in text:
        return UnknownTopic(f"A topic does not exist or was deleted: {root(text)}")
    if "TimeoutException" in text and "kafka" in text:
        return NotReachable(f"The Kafka server does not respond: {root(text)}")
    return JobFailed(root(text))


def root(text: str) -> str:
    """The innermost cause of a Java stack trace, without its package; else the first line."""
    causes = _CAUSE.findall(text)
    line = (
        causes[-1] if causes else text.strip().splitlines()[0] if text.strip() else "unknown reason"
    )
    return _CLASS.sub(r"\1: ", line.strip())


@contextmanager
def spark_errors() -> Iterator[None]:
    """Run a block; errors of Spark in it are raised as PipelineErrors."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise explained(str(error)) from error
