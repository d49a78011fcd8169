"""Errors of brokers, as the parts of this package see them.

BrokerError             a request to a broker had no result
├── BrokerLost          no answer: it may have been carried out, or not
└── BrokerRefused       the broker answered with an error, its code
"""

from __future__ import annotations


class BrokerError(Exception):
    """A request to a broker had no result."""


class BrokerLost(BrokerError):
    """The broker cannot be reached, or did not answer: the request may have been carried out."""


class BrokerRefused(BrokerError):
    """The broker refused."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"broker answered {code}: {reason}")
        self.code = code
        self.reason = reason
