"""Shared by transactional handlers: error codes as a version of their API knows them."""

from __future__ import annotations

from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.protocol.kafka.errors import ErrorCode


def fenced_code(code: ErrorCode, knows_fenced: bool) -> ErrorCode:
    """The code as clients expect it: PRODUCER_FENCED is newer than most of these APIs."""
    if code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return coordinator_code(code)
