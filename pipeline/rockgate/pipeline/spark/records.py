"""Records as Spark's Kafka source and sink have them: columns, and headers in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rockgate.pipeline.errors import BadOption

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEADERS_TYPE = "array<struct<key: string, value: binary>>"
SINK_COLUMNS = ("topic", "partition", "key", "value", "headers")
"""What the sink takes. A timestamp is not among it: Spark lets the producer stamp the time."""


def header(name: str, value: Column) -> Column:
    """One header; what is not bytes is written as text."""
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def with_headers(headers: Column, *more: Column) -> Column:
    """A record's headers and some more behind them; a record without any has null."""
    return F.concat(F.coalesce(headers, F.expr(f"cast(array() as {HEADERS_TYPE})")), F.array(*more))


def header_value(headers: Column, name: str) -> Column:
    """The value of the last header of that name, as text; null where there is none."""
    named = F.filter(headers, lambda each: each["key"] == F.lit(name))
    return F.try_element_at(named, F.lit(-1))["value"].cast("string")


def milliseconds(timestamp: Column) -> Column:
    """A record's time as Kafka has it."""
    return F.unix_millis(timestamp)


def size(frame: DataFrame) -> Column:
    """Bytes of key, value and headers."""
    parts = [F.coalesce(F.octet_length(F.col(name)), F.lit(0)) for name in ("key", "value")]
    if "headers" in frame.columns:
        each = F.aggregate(
            F.coalesce(F.col("headers"), F.expr(f"cast(array() as {HEADERS_TYPE})")),
            F.lit(0),
            lambda total, one: (
                total
                + F.octet_length(one["key"])
                + F.coalesce(F.octet_length(one["value"]), F.lit(0))
            ),
        )
        parts.append(each)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.cast("long")


def for_sink(frame: DataFrame) -> DataFrame:
    """The columns that the sink takes, out of what a function returned; others are left behind."""
    if "value" not in frame.columns:
        raise BadOption(
            f"The DataFrame needs a column `value`, but has {', '.join(frame.columns)}. "
            "to_json(struct(*)) makes one of all columns."
        )
    types = dict(frame.dtypes)
    for name in ("key", "value"):
        if name in types and types[name] not in ("string", "binary"):
            raise BadOption(f"Column `{name}` must be string or binary, not {types[name]}.")
    return frame.select(*(name for name in SINK_COLUMNS if name in types))
