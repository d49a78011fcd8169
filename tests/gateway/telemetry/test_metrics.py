import re

import pytest

from rockgate.gateway.telemetry.metric import Metric, MetricType
from rockgate.gateway.telemetry.metrics import METRICS
from rockgate.gateway.telemetry.renamed import RENAMED


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_is_named_by_the_rules_and_described(metric: Metric) -> None:
    assert re.fullmatch(r"(rockgate|process)_[a-z_]+", metric.name)
    assert metric.about.endswith(".") and "\n" not in metric.about
    if metric.kind is MetricType.HISTOGRAM:
        assert metric.name.endswith("_seconds")
    if metric.kind is MetricType.COUNTER:
        assert metric.name.endswith("_total")


def test_every_metric_of_the_module_is_in_the_table() -> None:
    from rockgate.gateway.telemetry import (
        broker_metrics,
        client_metrics,
        cluster_metrics,
        metrics,
    )

    modules = (metrics, broker_metrics, client_metrics, cluster_metrics)
    named = [value for each in modules for value in vars(each).values()]
    declared = {each.name for each in named if isinstance(each, Metric)}
    assert declared == set(METRICS)


def test_an_old_name_is_of_a_metric_that_there_is_and_of_no_other() -> None:
    assert set(RENAMED) <= set(METRICS)
    assert not set(RENAMED.values()) & set(METRICS)
    assert len(set(RENAMED.values())) == len(RENAMED)
