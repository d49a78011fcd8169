"""docs/reference/metrics.md: generated from the table of metrics."""

from collections.abc import Iterator

from rockgate.gateway.telemetry.durations import BOUNDS
from rockgate.gateway.telemetry.metrics import METRICS
from rockgate.gateway.telemetry.renamed import RENAMED

PAGE = "docs/reference/metrics.md"

INTRODUCTION = """\
<!-- Written by `make docs` from the table of metrics. -->
# Metrics

The HTTP listener (`http.listen`) serves these metrics at `/metrics` in the Prometheus text format.
Counters cost a request a few additions; everything else is collected during the scrape, in slices
of 2 ms, so that a large page does not stall the event loop.

Most of the cost of a scrape is consumer lag: about 15 µs of CPU time for each pair of a group and a
topic it has offsets in, whether the pair has a series or not. With a thousand pairs that is 15 ms;
with 60,000 (10,000 topics and 50,000 groups) it is about a second (`rockgate_scrape_seconds`). At
that size, scrape once a minute.

`metrics.topics_max` and `metrics.groups_max` bound the number of series; the remainder is counted
by `rockgate_topics_without_series` and `rockgate_group_lags_without_series`. Labels use the names
of Kafka's and RocketMQ's APIs, requests and errors; a request that is not supported is `unknown`. A
disabled listener exports no metrics. Those that begin with `rockgate_cluster_` are of `rockgate
gateway`, which serves this page where `--http` or `http.listen` says so, and has besides those of
the process and of Kafka's requests and connections. Throttling is described in
[quotas.md](quotas.md).

```yaml
scrape_configs:
  - job_name: rockgate
    static_configs:
      - targets: ["127.0.0.1:8080"]
```
"""


def render() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *lines(), "", *buckets(), "", *renamed()]) + "\n"


def lines() -> Iterator[str]:
    """A table of the metrics in the order of their sources."""
    yield "| metric | type | labels | description |"
    yield "|---|---|---|---|"
    for metric in METRICS.values():
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
        yield f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.about} |"


def buckets() -> Iterator[str]:
    """What histograms are cut into."""
    yield "Histogram buckets, in seconds: " + ", ".join(f"{x:g}" for x in BOUNDS) + "."


def renamed() -> Iterator[str]:
    """The old names that are still exported."""
    yield from ("## Deprecated names", "")
    yield "Renamed metrics are exported under both names until the next version."
    yield from ("", "| deprecated | use |", "|---|---|")
    for new, old in RENAMED.items():
        yield f"| `{old}` | `{new}` |"
