"""The codes by which a broker answers a send, by what they say of the message."""

from __future__ import annotations

from typing import Final

from rockgate.protocol.remoting.codes import ResponseCode

BUSY_S: Final = 0.01
BUSY_S_MAX: Final = 0.32
"""How long a busy broker is left alone, at first and at most."""

STORED: Final = frozenset((ResponseCode.SUCCESS,))
STORED_ONCE: Final = frozenset(
    (
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    )
)
"""Stored, but not as often or as durably as the broker's settings want."""
BUSY: Final = frozenset((ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL))
ILLEGAL: Final = frozenset((ResponseCode.MESSAGE_ILLEGAL, ResponseCode.INVALID_PARAMETER))
