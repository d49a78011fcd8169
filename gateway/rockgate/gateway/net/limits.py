"""Limits of a connection: memory and timeouts, as a session uses them."""

from dataclasses import dataclass
from typing import Protocol


class LimitsConfig(Protocol):
    """The settings of a listener that limit each connection."""

    @property
    def frame_bytes_max(self) -> int:
        """Maximum size of a request."""

    @property
    def in_flight_max(self) -> int:
        """Maximum number of requests processed at a time."""

    @property
    def in_flight_bytes_max(self) -> int:
        """Maximum number of request bytes held at a time."""

    @property
    def unread_bytes_max(self) -> int:
        """Maximum number of response bytes that a client may leave unread."""

    @property
    def idle_ms_max(self) -> int:
        """Time without traffic after which a connection is closed."""

    @property
    def frame_ms_max(self) -> int:
        """Time for one request to arrive."""

    @property
    def unread_ms_max(self) -> int:
        """Time in which a client must read at least one byte of its responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one session, with times in seconds as the event loop counts them."""

    frame_bytes_max: int
    in_flight_max: int
    in_flight_bytes_max: int
    unread_bytes_max: int
    idle_seconds_max: float
    frame_seconds_max: float
    unread_seconds_max: float

    @classmethod
    def of(cls, config: LimitsConfig) -> "Limits":
        """The limits for these settings."""
        return cls(
            frame_bytes_max=config.frame_bytes_max,
            in_flight_max=config.in_flight_max,
            in_flight_bytes_max=config.in_flight_bytes_max,
            unread_bytes_max=config.unread_bytes_max,
            idle_seconds_max=config.idle_ms_max / 1000,
            frame_seconds_max=config.frame_ms_max / 1000,
            unread_seconds_max=config.unread_ms_max / 1000,
        )

    @property
    def look_seconds(self) -> float:
        """How often a session must check the clock to enforce every limit."""
        return min(self.idle_seconds_max, self.frame_seconds_max, self.unread_seconds_max)
