"""Validates names from RocketMQ clients, with the limits of RocketMQ's own clients.

Names are stored for as long as what they name, and written to the log; clients may send any.
"""

from __future__ import annotations

import re
from typing import Final

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.transcode.names import to_rocketmq, to_store
from rockgate.protocol.remoting.codes import ResponseCode

GROUP_CHARS_MAX: Final = 255
GROUP_CHARS: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
TOPIC_CHARS_MAX: Final = 262
"""RocketMQ's limit of 127 for a topic; a retry topic is its prefix and a group."""
CLIENT_ID_CHARS_MAX: Final = 1_000
"""Address, instance and unit of a client: RocketMQ has no limit, and its own ids have some 50."""


def check_group(name: str) -> None:
    """INVALID_PARAMETER for a group name that RocketMQ's clients reject themselves."""
    _check("group name", name, GROUP_CHARS_MAX)
    group_of(name)


def check_new_group(name: str) -> None:
    """The same, and for one with other characters, as RocketMQ's broker has it for its settings."""
    check_group(name)
    if not GROUP_CHARS.fullmatch(name):
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"Group name {name!r} is invalid: it must have letters, digits, '_', '-', '%' or '|'.",
        )


def group_of(name: str) -> str:
    """The store's name of a requested group; INVALID_PARAMETER for one with a dot."""
    if "." in name:
        # It would be mistaken for the group that Kafka has under another name.
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"Group name {name!r} contains a dot; its name in RocketMQ is {to_rocketmq(name)!r}.",
        )
    return to_store(name) if "|" in name else name


def check_topic(name: str) -> None:
    """The same for a topic that need not exist."""
    _check("topic name", name, TOPIC_CHARS_MAX)


def check_client_id(client_id: str) -> None:
    """The same for a client id."""
    _check("client id", client_id, CLIENT_ID_CHARS_MAX)


def _check(what: str, text: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"{what.capitalize()} is {len(text):,} characters; the maximum is {chars_max:,}.",
        )
