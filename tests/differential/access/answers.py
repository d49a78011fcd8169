"""Responses reduced to what authorization decides: errors, what is listed, allowed operations."""

from __future__ import annotations

from typing import Any

from tests.differential.access.cells import Cell

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.share_fetch import ShareFetchResponse

_NAMES = frozenset(
    {"name", "topic", "topic_name", "group_id", "key", "transactional_id", "resource_name"}
)
_OPERATIONS = frozenset(
    {"authorized_operations", "topic_authorized_operations", "cluster_authorized_operations"}
)


def reduced(response: Any, cell: Cell) -> Any:
    """A response as plain values; names are those of the cell, and others are left out."""
    if isinstance(response, ShareFetchResponse):
        # Apache Kafka leaves out a partition, or answers with nothing of it, as it happens.
        for topic in response.responses:
            topic.partitions = [each for each in topic.partitions if each.error_code]
    own = {
        cell.topic: "topic",
        cell.absent: "absent",
        cell.group: "group",
        cell.transaction: "transaction",
        "1": "node",
        "7": "node",
    }
    return _reduced(response, own)


def _said(detail: str, own: dict[str, str]) -> str:
    """A sentence about topics, with the names that all cells have in common."""
    for name, common in own.items():
        if not name.isdigit():
            detail = detail.replace(name, common)
    return detail


def _reduced(value: Any, own: dict[str, str]) -> Any:
    found: dict[str, Any] = {}
    for field in getattr(type(value), "__slots__", ()):
        each = getattr(value, field)
        if field.endswith("error_code"):
            found[field] = ErrorCode(each).name
        elif field in _OPERATIONS or field == "status_code":
            found[field] = each
        elif field == "status_detail":
            found[field] = _said(each, own)
        elif field in _NAMES and isinstance(each, str) and each:
            if each not in own:
                return None
            found[field] = own[each]
        elif isinstance(each, list):
            items = [_reduced(item, own) for item in each]
            items = sorted((item for item in items if item), key=repr)
            if items:
                found[field] = items
    return found
