"""The broker's settings by RocketMQ's names: listed (26), and some changed while it runs (25).

What was changed is in the log and overrides the configuration until it is set back to the
configured value; admin clients of Kafka see and change the same settings by our names. A change is
all or nothing, and is effective once it is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from typing import Final, NamedTuple

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Buffer

BODY_BYTES_MAX: Final = 64 << 10
NAME_CHARS_MAX: Final = 60
_OF_REMOTING: Final = {
    "maxMessageSize": "message_bytes_max",
    "maxTransferCountOnMessageInMemory": "pull_messages_max",
    "maxTransferBytesOnMessageInMemory": "pull_bytes_max",
    "namesrvAddr": "name_servers",
    "transactionTimeOut": "immune_ms",
    "transactionCheckInterval": "check_interval_ms",
    "transactionCheckMax": "check_times_max",
    "useServerSideResetOffset": "server_side_reset",
}
_OF_OVERLOAD: Final = {
    "ackThreadPoolQueueCapacity": "ack_in_flight_max",
    "adminBrokerThreadPoolQueueCapacity": "admin_in_flight_max",
    "consumerFallbehindThreshold": "slow_group_bytes_max",
    "disableConsumeIfConsumerReadSlowly": "slow_groups",
    "endTransactionPoolQueueCapacity": "transaction_in_flight_max",
    "heartbeatThreadPoolQueueCapacity": "heartbeat_in_flight_max",
    "osPageCacheBusyTimeOutMills": "busy_ms_min",
    "pullThreadPoolQueueCapacity": "pull_in_flight_max",
    "sendThreadPoolQueueCapacity": "send_in_flight_max",
    "waitTimeMillsInAckQueue": "ack_wait_ms_max",
    "waitTimeMillsInAdminBrokerQueue": "admin_wait_ms_max",
    "waitTimeMillsInHeartbeatQueue": "heartbeat_wait_ms_max",
    "waitTimeMillsInPullQueue": "pull_wait_ms_max",
    "waitTimeMillsInSendQueue": "send_wait_ms_max",
    "waitTimeMillsInTransactionQueue": "transaction_wait_ms_max",
}
FIXED: Final = {
    "autoCreateTopicEnable": "topics.auto_create",
    "brokerClusterName": "remoting.cluster_name",
    "brokerFastFailureEnable": "overload.enabled",
    "brokerIP1": "remoting.advertise",
    "brokerName": "remoting.broker_name",
    "defaultTopicQueueNums": "topics.partitions",
    "fileReservedTime": "store.retention_ms",
    "flushDiskType": "store.flush",
    "listenPort": "remoting.listen",
    "messageDelayLevel": "remoting.delay_levels",
}
"""What has another name here, and is read when the server starts."""
NAME_SERVERS_MAX: Final = 16
_SWITCHES: Final = {"false": 0, "true": 1}
_SWITCH: Final = {"minimum": 0, "maximum": 1}


class NamedSetting(NamedTuple):
    """A field of the configuration that can be changed by RocketMQ's name."""

    name: str
    """Our name."""
    section: type[RemotingConfig] | type[OverloadConfig]
    field: str
    kind: type
    bounds: Mapping[str, int]


def _settings(
    prefix: str, section: type[RemotingConfig] | type[OverloadConfig], named: Mapping[str, str]
) -> dict[str, NamedSetting]:
    known = {each.name: each for each in fields(section)}
    return {
        name: NamedSetting(
            f"{prefix}.{field}",
            section,
            field,
            type(known[field].default),
            _SWITCH if isinstance(known[field].default, bool) else known[field].metadata,
        )
        for name, field in named.items()
    }


CHANGEABLE: Final = {
    **_settings("remoting", RemotingConfig, _OF_REMOTING),
    **_settings("overload", OverloadConfig, _OF_OVERLOAD),
}
"""What can be changed, by RocketMQ's names."""


class BrokerSettings:
    """Shows the settings, and changes those that can be."""

    def __init__(
        self,
        *,
        configured: RemotingConfig,
        overload: OverloadConfig,
        changed: ChangedSettings,
        facts: Mapping[str, str],
    ) -> None:
        """`facts` are settings that are not among these."""
        self._configured = configured
        self._overload = overload
        self._changed = changed
        self._facts = facts
        changed.on_changed.append(self._notify)
        self.on_changed: list[Callable[[RemotingConfig], None]] = []
        """Given the new configuration of the listener."""
        self.on_overload_changed: list[Callable[[OverloadConfig], None]] = []
        """Given the new bounds."""

    def advertise(self, address: str) -> None:
        """Show the address that clients are given."""
        host, _, port = address.rpartition(":")
        self.show({"brokerIP1": host, "listenPort": port})

    def show(self, facts: Mapping[str, str]) -> None:
        """Show facts, in place of earlier ones of the same names."""
        self._facts = {**self._facts, **facts}

    def current(self) -> dict[str, str]:
        """Return all settings by name."""
        now = (self._changed.over(self._configured), self._changed.over(self._overload))
        own = {name: _text(_value(setting, now)) for name, setting in CHANGEABLE.items()}
        return {**self._facts, **own}

    def change(self, body: Buffer) -> None:
        """Change settings, given as Java's properties; refuse all of them for one that cannot be.

        What has the value already is left alone, so that what 26 answered can be sent back.
        """
        if len(body) > BODY_BYTES_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"Settings are {len(body):,} bytes; the maximum is {BODY_BYTES_MAX:,}.",
            )
        known, configured = self.current(), (self._configured, self._overload)
        changes: dict[str, object] = {}
        for line in bytes(body).decode("utf-8", "replace").splitlines():
            name, _, text = (part.strip() for part in line.partition("="))
            if not name or known.get(name) == text:
                continue
            value, setting = _read(name, text), CHANGEABLE[name]
            # Below a change for all brokers, what is configured is a change, too.
            is_configured = value == _value(setting, configured) and not self._is_for_all(setting)
            changes[setting.name] = None if is_configured else setting.kind(value)
        self._changed.put(changes)

    def _is_for_all(self, setting: NamedSetting) -> bool:
        return self._changed.find(setting.name, of_all=True) is not None

    def _notify(self, sections: Collection[type]) -> None:
        if RemotingConfig in sections:
            config = self._changed.over(self._configured)
            for apply in self.on_changed:
                apply(config)
        if OverloadConfig in sections:
            bounds = self._changed.over(self._overload)
            for bound in self.on_overload_changed:
                bound(bounds)


def _text(value: object) -> str:
    """Return a value as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(setting: NamedSetting, sections: Iterable[RemotingConfig | OverloadConfig]) -> object:
    """Return the value of a setting in its section."""
    [found] = [each for each in sections if type(each) is setting.section]
    return getattr(found, setting.field)


def _is_allowed(setting: NamedSetting, value: int | str) -> bool:
    bounds = setting.bounds
    return not isinstance(value, str) and bounds["minimum"] <= value <= bounds["maximum"]


def wrong_servers(text: str) -> str:
    """Return what is wrong with a list of name servers, if anything is."""
    servers = [each for each in text.split(";") if each.strip()]
    if len(servers) > NAME_SERVERS_MAX:
        return f"must have at most {NAME_SERVERS_MAX} addresses, not {len(servers):,}"
    try:
        if all(Address.parse(each).port for each in servers):
            return ""
    except ValueError as wrong:
        return str(wrong)
    return "must have a port after each address"


def _read(name: str, text: str) -> int | str:
    """Return a value that can be set; Refused says what is wrong."""
    setting = CHANGEABLE.get(name)
    if setting is None:
        raise _fixed(name)
    if setting.kind is str:
        if wrong := wrong_servers(text):
            raise Refused(ResponseCode.INVALID_PARAMETER, f"{name} {wrong[:200]}.")
        return text
    if setting.kind is bool:
        if text not in _SWITCHES:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"{name} must be true or false, not {text[:NAME_CHARS_MAX]!r}.",
            )
        return _SWITCHES[text]
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
    if value is None or not _is_allowed(setting, value):
        bounds = setting.bounds
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
