"""Which settings can change while the server runs, for every wire.

What the parts of a server follow is here; everything else is read at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, get_type_hints

from rockgate.gateway.compose.config.gather import SETTINGS
from rockgate.gateway.compose.config.sections import Config
from rockgate.gateway.remoting.admin.broker_settings import CHANGEABLE as BY_ROCKETMQ_NAME
from rockgate.gateway.remoting.admin.broker_settings import wrong_servers
from rockgate.gateway.settings.changed import ChangeableSetting, bounded

_OTHERS: Final = (
    "consumer_groups.assignment_ms",
    "kafka.producer_expiry_ms",
    "security.connections_per_address_max",
    "share_groups.assignment_ms",
    "store.compaction_bytes_per_second",
    "store.compaction_interval_ms",
    "store.retention_bytes",
    "store.retention_ms",
    "streams_groups.assignment_ms",
    "topics.compression_type",
    "topics.message_bytes_max",
    "topics.timestamp_after_ms_max",
    "topics.timestamp_before_ms_max",
    "topics.timestamp_type",
)
_NAME_SERVERS: Final = "remoting.name_servers"


def changeable_settings() -> dict[str, ChangeableSetting]:
    """The settings that can change, by name."""
    keys = {each.name: name for name, each in BY_ROCKETMQ_NAME.items()}
    return {name: _changeable(name, keys) for name in sorted((*keys, *_OTHERS))}


def _changeable(name: str, keys: Mapping[str, str]) -> ChangeableSetting:
    setting = SETTINGS[name]
    read: Callable[[object], object] = setting.read
    if name == _NAME_SERVERS:
        read = _read_servers
    return ChangeableSetting(
        section=get_type_hints(Config)[setting.section],
        field=setting.field,
        kind=type(setting.default),
        read=bounded(read),
        key=keys.get(name, name),
    )


def _read_servers(given: object) -> object:
    text = SETTINGS[_NAME_SERVERS].read(given)
    assert isinstance(text, str), "a text was read"
    if wrong := wrong_servers(text):
        raise ValueError(wrong)
    return text
