"""A user's own function between topics; the worked example is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.house.checkout import ROOT
from tests.spark import MARKS, Record, new_topic, numbered, read_topic, send

from rockgate.pipeline.errors import BadOption, UnknownTopic
from rockgate.pipeline.jobs.run import Options, load, run
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster

pytestmark = MARKS

EXAMPLES = ROOT / "pipeline" / "examples"
BASE_MS = 1_700_000_000_000
HERE = "tests.pipeline.jobs.test_run"


def shout(records: DataFrame) -> DataFrame:
    return records.selectExpr("key", "upper(concat('v', string(value))) value", "partition")


def without_value(records: DataFrame) -> DataFrame:
    return records.selectExpr("key", "offset")


def not_a_table(records: DataFrame) -> int:
    return 3


def options(cluster: Cluster, function: str, inputs: list[str], out: str, place: Path) -> Options:
    named: dict[str, Any] = {"function": function, "inputs": tuple(inputs), "output": out}
    return Options(cluster=cluster, checkpoint=str(place), **named)


@pytest.mark.long
def test_a_function_is_run_over_what_comes_and_over_nothing_twice(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    source, sink = new_topic(cluster.bootstrap, 2), new_topic(cluster.bootstrap, 2)
    chosen = options(cluster, f"{HERE}:shout", [source], sink, tmp_path)
    for start in (0, 10):
        send(cluster.bootstrap, source, numbered(10, 2, start=start))
        run(spark, chosen, reporter)
    found = read_topic(cluster.bootstrap, sink, 20, 2)
    assert [(m.partition(), m.key(), m.value()) for m in found] == [
        (p, b"k%d" % n, b"V%d" % n) for p in range(2) for n in range(p, 20, 2)
    ]


def test_orders_are_joined_with_their_payments(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    orders, payments, paid = (new_topic(cluster.bootstrap, 2) for _ in range(3))

    def record(value: dict[str, Any], after_ms: int, partition: int) -> Record:
        text = json.dumps(value).encode()
        return Record(value=text, timestamp=BASE_MS + after_ms, partition=partition)

    def order(number: int, cents: int, after_ms: int) -> Record:
        value = {"order": number, "customer": f"c{number}", "cents": cents}
        return record(value, after_ms, number % 2)

    def payment(number: int, cents: int, after_ms: int) -> Record:
        value = {"order": number, "cents": cents, "method": "card"}
        # Paid through whichever partition: the join is by the order's number.
        return record(value, after_ms, (number + 1) % 2)

    send(cluster.bootstrap, orders, [order(1, 250, 0), order(2, 300, 0), order(3, 100, 0)])
    # One is paid, one with the wrong sum, one much too late.
    late_ms = 31 * 60_000
    send(
        cluster.bootstrap,
        payments,
        [payment(1, 250, 1200), payment(2, 299, 1200), payment(3, 100, late_ms)],
    )
    chosen = options(cluster, "orders:paid", [orders, payments], paid, tmp_path)
    run(spark, chosen, reporter)
    [message] = read_topic(cluster.bootstrap, paid, 1, 2)
    assert message.key() == b"1"
    assert json.loads(message.value()) == {
        "order": 1,
        "customer": "c1",
        "cents": 250,
        "method": "card",
        "waited_ms": 1200,
    }
    # The second order is paid in full later: its state was saved in the checkpoint.
    send(cluster.bootstrap, payments, [payment(2, 300, 5000)])
    run(spark, chosen, reporter)
    assert {m.key() for m in read_topic(cluster.bootstrap, paid, 2, 2)} == {b"1", b"2"}


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("nocolon", "is not of the form module:function"),
        ("no_such_module:f", "No module no_such_module"),
        (f"{HERE}:no_such", "has no function no_such"),
        (f"{HERE}:without_value", "needs a column `value`, but has key, offset"),
        (f"{HERE}:not_a_table", "must return a DataFrame, not int"),
        ("orders:paid", "does not accept 1 DataFrames"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    told: str,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    topic = new_topic(cluster.bootstrap)
    with pytest.raises(BadOption, match=told):
        run(spark, options(cluster, function, [topic], "out", tmp_path), reporter)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_topic_is_reported(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    with pytest.raises(UnknownTopic, match="Topic nowhere does not exist at"):
        run(spark, options(cluster, f"{HERE}:shout", ["nowhere"], "out", tmp_path), reporter)


def test_a_function_is_found_by_its_name() -> None:
    assert load(f"{HERE}:shout").__name__ == "shout"
