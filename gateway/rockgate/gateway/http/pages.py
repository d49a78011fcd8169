"""The pages of the HTTP listener.

`/health` answers while the process runs its loop; `/ready` answers 200 only between the ready line
and the stop, so that a load balancer sends clients elsewhere while the server starts or drains; and
503 with the reason once the disk has failed.
`/metrics` is for Prometheus; docs/reference/metrics.md lists its metrics.
"""

from collections.abc import Awaitable, Callable, Mapping

from rockgate.gateway.http.session import Answer, Page
from rockgate.gateway.telemetry.exposition import CONTENT_TYPE


def pages(phase: Callable[[], str], telemetry: Callable[[], Awaitable[str]]) -> Mapping[str, Page]:
    """Every page by its path.

    `phase` returns `ready`, or why the server is not: starting, stopping, a failed disk.
    `telemetry` collects the metrics.
    """

    def health() -> Answer:
        return Answer(body=b"ok\n")

    def ready() -> Answer:
        now = phase()
        return Answer(status=200 if now == "ready" else 503, body=f"{now}\n".encode())

    async def metrics() -> Answer:
        return Answer(body=(await telemetry()).encode(), content_type=CONTENT_TYPE)

    return {"/health": health, "/ready": ready, "/metrics": metrics}
