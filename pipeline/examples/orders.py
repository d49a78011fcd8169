"""Orders joined with their payments: a worked example of `rockgate pipeline run orders:paid`.

    orders    key 7   value {"order": 7, "customer": "ada", "cents": 250}
    payments  key p1  value {"order": 7, "cents": 250, "method": "card"}
    paid      key 7   value {"order": 7, "customer": "ada", "cents": 250, "method": "card",
                             "waited_ms": 1200}

An order waits for its payment for half an hour; the watermarks let Spark forget both after that.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ORDER = "order bigint, customer string, cents bigint"
PAYMENT = "order bigint, cents bigint, method string"


def paid(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Each order with the payment that settles it, keyed by the order's number."""
    ordered = parsed(orders, ORDER).alias("o")
    settled = parsed(payments, PAYMENT).alias("p")
    joined = ordered.join(
        settled,
        F.expr(
            "o.order = p.order and o.cents = p.cents "
            "and p.timestamp between o.timestamp and o.timestamp + interval 30 minutes"
        ),
    )
    waited = F.unix_millis("p.timestamp") - F.unix_millis("o.timestamp")
    value = F.struct("o.order", "o.customer", "o.cents", "p.method", waited.alias("waited_ms"))
    return joined.select(
        F.col("o.order").cast("string").alias("key"), F.to_json(value).alias("value")
    )


def parsed(records: DataFrame, schema: str) -> DataFrame:
    """The JSON of the values as columns, beside the record's time."""
    value = F.from_json(F.col("value").cast("string"), schema).alias("json")
    return (
        records.select("timestamp", value)
        .select("timestamp", "json.*")
        .withWatermark("timestamp", "30 minutes")
    )
