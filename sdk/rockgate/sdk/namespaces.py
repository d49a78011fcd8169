"""Namespaces as prefixes of topics and groups: `shop%orders` on the wire, `orders` here.

A retry topic keeps its prefix in front (`%RETRY%shop%payers`), and RocketMQ's system topics have no
namespace. The application never sees one.
"""

from __future__ import annotations

from typing import Final

from rockgate.sdk.results import Queue

SEPARATOR: Final = "%"
PREFIXES: Final = ("%RETRY%", "%DLQ%")
SYSTEM_PREFIXES: Final = ("rmq_sys_", "RMQ_SYS_", "TBW102", "SCHEDULE_TOPIC_", "CID_RMQ_SYS_")
REPLY_SUFFIX: Final = "_REPLY_TOPIC"


def wrap(namespace: str, name: str) -> str:
    """The name of a topic or group on the wire."""
    if not namespace or name.startswith(SYSTEM_PREFIXES) or name.endswith(REPLY_SUFFIX):
        return name
    prefix = next((each for each in PREFIXES if name.startswith(each)), "")
    rest = name[len(prefix) :]
    if rest.startswith(namespace + SEPARATOR):
        return name
    return f"{prefix}{namespace}{SEPARATOR}{rest}"


def unwrap(namespace: str, name: str) -> str:
    """The name as its user knows it."""
    if not namespace:
        return name
    prefix = next((each for each in PREFIXES if name.startswith(each)), "")
    return prefix + name[len(prefix) :].removeprefix(namespace + SEPARATOR)


def wrap_queue(namespace: str, queue: Queue) -> Queue:
    """A queue by the name of its topic on the wire."""
    return Queue(wrap(namespace, queue.topic), queue.broker, queue.id) if namespace else queue


def unwrap_queue(namespace: str, queue: Queue) -> Queue:
    """A queue as its user knows it."""
    return Queue(unwrap(namespace, queue.topic), queue.broker, queue.id) if namespace else queue
