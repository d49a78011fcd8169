"""Delay by header: what the jobs write, and for which topics they do."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark import MARKS

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.delay import DELAYING, check_topics, delayed
from rockgate.pipeline.spark.records import HEADERS_TYPE


def test_topics_must_let_their_records_wait() -> None:
    check_topics({})
    check_topics({"a": "DELAY", "b": "MIXED"})
    with pytest.raises(BadOption, match=r"rockgate topics alter b --config message\.type=MIXED"):
        check_topics({"a": "DELAY", "b": "NORMAL"})
    with pytest.raises(BadOption, match="only rockgate delays records"):
        check_topics({"a": None})


class TestHeaders:
    pytestmark = MARKS

    @pytest.mark.parametrize("had", [None, [], [("a", b"1")], [*[(d, b"7") for d in DELAYING]]])
    def test_a_delay_replaces_every_other(
        self, spark: SparkSession, had: list[tuple[str, bytes]] | None
    ) -> None:
        frame = spark.createDataFrame([(had,)], f"headers {HEADERS_TYPE}")
        [row] = frame.select(delayed(F.col("headers"), 1_500).alias("headers")).collect()
        kept = [(name, value) for name, value in had or [] if name not in DELAYING]
        found = [(each["key"], bytes(each["value"])) for each in row["headers"]]
        assert found == [*kept, ("TIMER_DELAY_MS", b"1500")]
