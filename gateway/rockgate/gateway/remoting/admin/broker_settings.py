"""The broker's settings by RocketMQ's names: listed (26), and some changed while it runs (25).

docs/internals/state.md has the shape of the records: what was changed is in the log, and overrides
the configuration until it is set back to the configured value. A change is all or nothing, and is
effective once it is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_broker_settings"
BODY_BYTES_MAX: Final = 64 << 10
NAME_CHARS_MAX: Final = 60
CHANGEABLE: Final = {
    "maxMessageSize": "message_bytes_max",
    "maxTransferCountOnMessageInMemory": "pull_messages_max",
    "maxTransferBytesOnMessageInMemory": "pull_bytes_max",
    "transactionTimeOut": "immune_ms",
    "transactionCheckInterval": "check_interval_ms",
    "transactionCheckMax": "check_times_max",
}
"""RocketMQ's names of what can be changed, and the fields of the configuration."""
FIXED: Final = {
    "autoCreateTopicEnable": "topics.auto_create",
    "brokerClusterName": "remoting.cluster_name",
    "brokerIP1": "remoting.advertise",
    "brokerName": "remoting.broker_name",
    "defaultTopicQueueNums": "topics.partitions",
    "fileReservedTime": "store.retention_ms",
    "flushDiskType": "store.flush",
    "listenPort": "remoting.listen",
    "messageDelayLevel": "remoting.delay_levels",
    "namesrvAddr": "remoting.name_servers",
}
"""What has another name here, and is read when the server starts."""
_BOUNDS: Final = {each.name: each.metadata for each in fields(RemotingConfig)}


class ChangedSettings:
    """What was changed while the server ran, by RocketMQ's names: a fold."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[str, int] = KeyedFold(
            journal, name="broker settings", topic=TOPIC, key=str, value=int
        )

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    def put(self, changes: Mapping[str, int | None]) -> None:
        """Remember changes, all or none; None is what is configured."""
        self._fold.put(changes)

    def over(self, config: RemotingConfig) -> RemotingConfig:
        """Return the configuration with what was changed."""
        # A later version may change less, or have other limits.
        known = {name: value for name, value in self._fold.items() if _is_allowed(name, value)}
        changes: dict[str, Any] = {CHANGEABLE[name]: value for name, value in known.items()}
        return replace(config, **changes)


class BrokerSettings:
    """Shows the settings, and changes those that can be."""

    def __init__(
        self, *, configured: RemotingConfig, changed: ChangedSettings, facts: Mapping[str, str]
    ) -> None:
        """`facts` are settings that are not the listener's own."""
        self._configured = configured
        self._changed = changed
        self._facts = facts
        self.on_changed: list[Callable[[RemotingConfig], None]] = []
        """Given the new configuration."""

    def advertise(self, address: str) -> None:
        """Show the address that clients are given."""
        host, _, port = address.rpartition(":")
        self._facts = {**self._facts, "brokerIP1": host, "listenPort": port}

    def current(self) -> dict[str, str]:
        """Return all settings by name."""
        config = self._changed.over(self._configured)
        numbers = {name: str(getattr(config, field)) for name, field in CHANGEABLE.items()}
        return {**self._facts, **numbers}

    def change(self, body: Buffer) -> None:
        """Change settings, given as Java's properties; refuse all of them for one that cannot be.

        What has the value already is left alone, so that what 26 answered can be sent back.
        """
        if len(body) > BODY_BYTES_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"Settings are {len(body):,} bytes; the maximum is {BODY_BYTES_MAX:,}.",
            )
        known = self.current()
        changes: dict[str, int | None] = {}
        for line in bytes(body).decode("utf-8", "replace").splitlines():
            name, _, text = (part.strip() for part in line.partition("="))
            if not name or known.get(name) == text:
                continue
            value = _read(name, text)
            is_configured = value == getattr(self._configured, CHANGEABLE[name])
            changes[name] = None if is_configured else value
        if not changes:
            return
        self._changed.put(changes)
        config = self._changed.over(self._configured)
        for apply in self.on_changed:
            apply(config)


def _is_allowed(name: str, value: int) -> bool:
    field = CHANGEABLE.get(name)
    return field is not None and _BOUNDS[field]["minimum"] <= value <= _BOUNDS[field]["maximum"]


def _read(name: str, text: str) -> int:
    """Return a value that can be set; Refused says what is wrong."""
    field = CHANGEABLE.get(name)
    if field is None:
        raise _fixed(name)
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
    if value is None or not _is_allowed(name, value):
        bounds = _BOUNDS[field]
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"{name} must be a number from {bounds['minimum']:,} to {bounds['maximum']:,}, "
            f"not {text[:NAME_CHARS_MAX]!r}.",
        )
    return value


def _fixed(name: str) -> Refused:
    setting = FIXED.get(name)
    advice = "those that can are " + ", ".join(sorted(CHANGEABLE))
    if setting is not None:
        advice = f"set {setting} (see `rockgate config`) and restart the server"
    return Refused(
        ResponseCode.NO_PERMISSION,
        f"{name[:NAME_CHARS_MAX]} cannot be changed at run time; {advice}.",
    )
