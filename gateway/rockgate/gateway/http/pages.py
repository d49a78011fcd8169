"""The pages of the HTTP door.

`/health` answers while the process runs its loop; `/ready` answers 200 only between the ready line
and the stop, so that a load balancer sends clients elsewhere while the server starts or drains.
"""

from collections.abc import Callable, Mapping

from rockgate.gateway.http.session import Answer, Page


def pages(phase: Callable[[], str]) -> Mapping[str, Page]:
    """Every page by its path; `phase` says `starting`, `ready` or `stopping`."""

    def health() -> Answer:
        return Answer(body=b"ok\n")

    def ready() -> Answer:
        now = phase()
        return Answer(status=200 if now == "ready" else 503, body=f"{now}\n".encode())

    return {"/health": health, "/ready": ready}
