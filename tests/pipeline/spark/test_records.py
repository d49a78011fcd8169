"""Headers in expressions, and what a table for a topic must have."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark import MARKS

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.records import for_sink, header, header_value, size, with_headers

pytestmark = MARKS


def test_headers_are_added_behind_those_that_are_there(spark: SparkSession) -> None:
    table = spark.sql(
        "select array(struct('a' as key, cast('1' as binary) as value)) headers "
        "union all select cast(null as array<struct<key: string, value: binary>>)"
    )
    added = with_headers(F.col("headers"), header("b", F.lit(2)))
    found = [[(h.key, bytes(h.value)) for h in row[0]] for row in table.select(added).collect()]
    assert found == [[("a", b"1"), ("b", b"2")], [("b", b"2")]]


def test_the_last_header_of_a_name_counts(spark: SparkSession) -> None:
    table = spark.sql(
        "select cast(array(struct('a', cast('1' as binary)), struct('a', cast('2' as binary)), "
        "struct('b', cast(null as binary))) as array<struct<key: string, value: binary>>) headers "
        "union all select cast(null as array<struct<key: string, value: binary>>)"
    )
    names = [header_value(F.col("headers"), name) for name in ("a", "b", "c")]
    assert [tuple(row) for row in table.select(*names).collect()] == [
        ("2", None, None),
        (None, None, None),
    ]


def test_a_record_s_size_is_key_value_and_headers(spark: SparkSession) -> None:
    table = spark.sql(
        "select cast('abc' as binary) key, cast(null as binary) value, "
        "array(struct('hh' as key, cast('123' as binary) as value)) headers"
    )
    assert table.select(size(table)).first()[0] == 8
    assert table.select(size(table.drop("headers"))).first()[0] == 3


def test_only_what_the_sink_takes_goes_to_it(spark: SparkSession) -> None:
    table = spark.sql("select 'v' value, 'k' key, 7 extra")
    assert for_sink(table).columns == ["key", "value"]
    with pytest.raises(BadOption, match="must be string or binary, not int"):
        for_sink(spark.sql("select 7 value"))
