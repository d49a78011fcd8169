"""Request metrics by API: latency, size and errors."""

from __future__ import annotations

from rockgate.gateway.telemetry.durations import Durations


class ApiStats(Durations):
    """Statistics of the requests of one API: latency, sizes, errors."""

    __slots__ = ("answer_bytes", "errors", "request_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.request_bytes = 0
        self.answer_bytes = 0
        self.errors: dict[int, int] = {}
        """Responses by error code; those without an error are not counted."""

    def count_error(self, code: int) -> None:
        """Count a response that carries an error."""
        self.errors[code] = self.errors.get(code, 0) + 1


class RequestStats:
    """The requests of one listener."""

    def __init__(self) -> None:
        self.apis: dict[int, ApiStats] = {}

    def of(self, api_key: int) -> ApiStats:
        """The statistics of an API."""
        stats = self.apis.get(api_key)
        if stats is None:
            stats = self.apis[api_key] = ApiStats()
        return stats
