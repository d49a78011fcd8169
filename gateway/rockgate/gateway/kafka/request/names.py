"""Topic names on Kafka's wire.

The store's names are RocketMQ's. Kafka's clients refuse `%`, so retry and dead-letter topics also
answer to reserved legal names on this side:

    %RETRY%group   rmq.retry.group
    %DLQ%group     rmq.dlq.group

A client cannot create a topic under a reserved name; everything else is the same on both sides.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.system_topics import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_PREFIX

NAME_SIZE_MAX = 249
RESERVED = "rmq."
"""The prefix of every name that differs in the store."""
INTERNAL = frozenset(("__consumer_offsets", "__transaction_state"))
"""Kafka's own internal topics."""
_CACHED_MAX = 10_000
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_ALIASES = (("rmq.retry.", RETRY_PREFIX), ("rmq.dlq.", DLQ_PREFIX))


def to_store(name: str) -> str:
    """Return the store's name of a topic by its name in Kafka."""
    if name.startswith(RESERVED):
        for alias, prefix in _ALIASES:
            if name.startswith(alias):
                return prefix + name[len(alias) :]
    return name


def to_kafka(name: str) -> str:
    """Return the name of a topic in Kafka."""
    if name.startswith("%"):
        for alias, prefix in _ALIASES:
            if name.startswith(prefix):
                return alias + name[len(prefix) :]
    return name


def group_of(name: str) -> str | None:
    """Return the group of a retry or dead-letter topic by its name in Kafka; None of others."""
    for alias, _ in _ALIASES:
        if name.startswith(alias):
            return name[len(alias) :]
    return None


def is_visible(name: str) -> bool:
    """Whether a store's name can be represented to Kafka clients."""
    return is_legal(to_kafka(name))


@lru_cache(_CACHED_MAX)
def in_store(name: str) -> str | None:
    """Return the store's name of a topic, None if the name is invalid in Kafka.

    Results are cached, so callers must not pass more than NAME_SIZE_MAX letters.
    """
    return to_store(name) if is_legal(name) else None


def is_legal(name: str) -> bool:
    """Whether a topic name is valid in Kafka."""
    return len(name) <= NAME_SIZE_MAX and _has_legal_letters(name)


@lru_cache(_CACHED_MAX)
def _has_legal_letters(name: str) -> bool:
    return bool(_LEGAL.fullmatch(name)) and name not in (".", "..")


def check_new(name: str) -> None:
    """Reject a name that a Kafka client cannot give to a new topic."""
    if not is_legal(name):
        quoted = name if len(name) <= NAME_SIZE_MAX else f"{name[:40]}…"
        raise RequestError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name {quoted!r} is invalid: it must have 1 to {NAME_SIZE_MAX} "
            "letters, digits, '.', '_' or '-'.",
        )
    is_ours = name in INTERNAL or name.startswith((SYSTEM_PREFIX, "rmq.sys."))
    if is_ours or to_store(name) != name:
        raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name!r} is reserved.")
