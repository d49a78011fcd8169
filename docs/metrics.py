"""docs/reference/metrics.md: what `/metrics` tells, from the table of metrics."""

from collections.abc import Iterator

from rockgate.gateway.telemetry.durations import BOUNDS
from rockgate.gateway.telemetry.metrics import METRICS

PAGE = "docs/reference/metrics.md"

INTRODUCTION = """\
<!-- Written by `make docs` from the table of metrics. -->
# Metrics

`http://HOST:PORT/metrics` of the HTTP listener (`http.listen`) has these in Prometheus' text
format. Counting costs a request a few additions; the rest is put together when somebody asks, a
little at a time, so that a page of a hundred thousand groups holds nobody up.

What a page costs is nearly all lag: each pair of a group and a topic that it has offsets in is
looked at, 15 µs or so of processor time, whether it has a series or not. With 10,000 topics and
50,000 groups in 60,000 such pairs that is about a second for a page, in pieces of 2 ms
(`rockgate_scrape_seconds`); with a thousand pairs it is 15 ms. Where there are very many, a page
each minute is enough.

Topics and groups are many, so the series about them are bounded (`metrics.topics_max`,
`metrics.groups_max`), and others say how many are not shown. The names of errors, APIs and
requests are Kafka's and RocketMQ's; a request that nothing answers is `unknown`. A listener that is
closed tells nothing. What a client has to wait for is in [quotas.md](quotas.md).

```yaml
scrape_configs:
  - job_name: rockgate
    static_configs:
      - targets: ["127.0.0.1:8080"]
```
"""


def render() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *lines(), "", *buckets()]) + "\n"


def lines() -> Iterator[str]:
    """A table of the metrics in the order of their sources."""
    yield "| metric | kind | labels | what it is |"
    yield "|---|---|---|---|"
    for metric in METRICS.values():
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
        yield f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.about} |"


def buckets() -> Iterator[str]:
    """What histograms are cut into."""
    yield "Histograms have these buckets, in seconds: " + ", ".join(f"{x:g}" for x in BOUNDS) + "."
