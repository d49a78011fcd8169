"""Batches that were refused and have to be sent again, before those behind them.

A producer has several batches in flight. When the first is refused because no term has begun yet,
or an outcome is uncertain, those behind it may arrive when that is over. A producer that is known
nowhere may begin with any sequence, but not with one of these: the batch that was refused would
come after it.

    refused      the first one of a producer that was refused is remembered
    behind       a batch with a later sequence of the same epoch: it continues nothing
    sent again   forgotten, and so after AGE_S, for the producer may have given it up
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader

AGE_S: Final = 10.0
"""What was in flight behind a batch arrives within this time."""
PRODUCERS_MAX: Final = 10_000
"""Producers of one queue; the one that was refused first is forgotten."""
_SEQUENCES: Final = 1 << 31
_AGAIN: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""Errors after which a producer sends the same batch again."""


class RefusedBatches:
    """Those of one queue. Times are those of the loop."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[int, int, float]] = {}
        """Epoch, sequence and time by producer."""

    def refuse(self, header: BatchHeader, error: BaseException | None, now: float) -> None:
        """A batch has ended with an error, if any."""
        if header.producer_id < 0 or not isinstance(error, RequestError):
            return
        if error.code not in _AGAIN or self.is_behind(header, now):
            return
        self._first.pop(header.producer_id, None)
        self._first[header.producer_id] = (header.producer_epoch, header.base_sequence, now)
        if len(self._first) > PRODUCERS_MAX:
            del self._first[next(iter(self._first))]

    def is_behind(self, header: BatchHeader, now: float) -> bool:
        """Whether a batch before this one was refused, and did not come again."""
        found = self._first.get(header.producer_id)
        if found is None:
            return False
        epoch, sequence, at = found
        distance = (header.base_sequence - sequence) % _SEQUENCES
        is_later = 0 < distance < _SEQUENCES // 2
        return is_later and header.producer_epoch == epoch and now - at <= AGE_S

    def arrived(self, header: BatchHeader, now: float) -> bool:
        """Forget a batch that was refused and comes again; whether this one is behind another."""
        if self.is_behind(header, now):
            return True
        self._first.pop(header.producer_id, None)
        return False


def too_early(header: BatchHeader) -> RequestError:
    """The error of a batch that is behind one that was refused."""
    reason = f"A batch before sequence {header.base_sequence} was refused, and comes first."
    return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
