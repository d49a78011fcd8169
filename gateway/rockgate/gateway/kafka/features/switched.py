"""Handlers of APIs that a feature switches off: at level 0 they refuse with UNSUPPORTED_VERSION."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, TypeVar

from rockgate.gateway.kafka.features.table import SWITCHES, Levels
from rockgate.gateway.kafka.request.handler import AnyHandler, Call, Row
from rockgate.protocol.kafka.errors import ErrorCode

Services = TypeVar("Services")


class Switched:
    """A handler behind the level of a feature. Like Kafka, the API stays advertised."""

    def __init__(self, handler: AnyHandler, feature: str, levels: Levels) -> None:
        self._handler = handler
        self._feature = feature
        self._levels = levels
        self.refuse = handler.refuse

    def handle(self, request: Any, call: Call) -> Any | Awaitable[Any]:
        """Answer as the handler does, or that it is switched off."""
        if not self._levels.level(self._feature):
            return self._handler.refuse(request, ErrorCode.UNSUPPORTED_VERSION)
        return self._handler.handle(request, call)


def switched(row: Row[Services], levels: Levels) -> Row[Services]:
    """A row whose handler is switched, if a feature does that."""
    feature = SWITCHES.get(row.key)
    if feature is None:
        return row
    make = row.make
    return replace(row, make=lambda services: Switched(make(services), feature, levels))
