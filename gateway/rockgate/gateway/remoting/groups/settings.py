"""Subscription group configs, as set by administrators: a fold, so that they persist.

docs/internals/state.md has the shape of its records: a group's name, and its settings as RocketMQ's
JSON. A group without settings has RocketMQ's defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC = b"rmq_sys_rockgate_rocketmq_groups"
DECODED_MAX = 10_000


class GroupSettings:
    """Settings by group."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[str, bytes] = KeyedFold(
            journal, name="rocketmq groups", topic=TOPIC, key=str, value=bytes
        )
        self.is_set: Callable[[str], bool] = self._fold.has
        """Whether a group's settings were set."""
        # Every pull reads these, so they are cached with the bytes that they were parsed from.
        self._decoded: dict[str, tuple[bytes, SubscriptionGroupConfig]] = {}

    @property
    def fold(self) -> Fold:
        """The fold."""
        return self._fold

    def of(self, group: str) -> SubscriptionGroupConfig:
        """A group's settings, or the defaults; they are shared and must not be changed."""
        stored = self._fold.find(group)
        if stored is None:
            return SubscriptionGroupConfig(group_name=group)
        known = self._decoded.get(group)
        if known is not None and known[0] is stored:
            return known[1]
        settings = _read(stored)
        if len(self._decoded) >= DECODED_MAX:
            self._decoded.clear()
        self._decoded[group] = (stored, settings)
        return settings

    def names(self) -> Iterator[str]:
        """Groups whose settings were set."""
        return (group for group, _ in self._fold.items())

    def set(self, settings: SubscriptionGroupConfig) -> None:
        """Set the settings of a group."""
        self._fold.put({settings.group_name: javajson.encode(settings)})

    def remove(self, group: str) -> None:
        """Reset a group to the defaults."""
        if self.is_set(group):
            self._fold.put({group: None})


def disabled(group: str) -> Refused:
    """The refusal of a group that must not consume; it begins with RocketMQ's text."""
    return Refused(
        ResponseCode.NO_PERMISSION,
        f"subscription group no permission, {group}. Its consumption is disabled "
        "(consumeEnable=false), by an administrator or because it was too far behind; enable it "
        "with `mqadmin updateSubGroup -s true`.",
    )


def _read(stored: bytes) -> SubscriptionGroupConfig:
    return javajson.decode(stored, SubscriptionGroupConfig, "group settings")
