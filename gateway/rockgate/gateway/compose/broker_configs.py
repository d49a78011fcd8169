"""The server's settings as Kafka broker configs, as they were when it started.

Each setting has its own name and, where Kafka has it, Kafka's; the defaults of topics have the
names of Kafka's broker configs, whether they can be set or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from rockgate.gateway.compose.config import SETTINGS, Config
from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.config.settings import Setting, documentation_of
from rockgate.gateway.compose.config.values import show
from rockgate.gateway.kafka.configs.broker import BrokerConfig, constant
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.configs.types import ConfigKind
from rockgate.gateway.kafka.server.listeners import protocol_of
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.topics.policy import FLUSH_EACH

_INT_MAX = (1 << 31) - 1
_NODE_ID = "server.node_id"
_LISTENER_NAMES = frozenset({"listeners", "advertised.listeners", "listener.security.protocol.map"})


_FACTS = (
    BrokerConfig(
        name="default.replication.factor",
        kind=ConfigKind.INT,
        value="1",
        default="1",
        about=constant("Default replication factor of a new topic; always 1."),
    ),
    BrokerConfig(
        name="delete.topic.enable",
        kind=ConfigKind.BOOLEAN,
        value="true",
        default="true",
        about=constant("Whether topics can be deleted; always true."),
    ),
)


def broker_configs(
    config: Config,
    node_id: int,
    defaults: TopicDefaults,
    *,
    endpoints: Sequence[Endpoint] = (),
    given: Collection[str] = (),
) -> Mapping[str, BrokerConfig]:
    """Every config of this broker by name, in order.

    `endpoints` are the listeners as they are bound, `given` the settings that were set
    explicitly.
    """
    listeners = _listeners(endpoints or config.kafka.endpoints(given))
    found = {each.name: each for each in (*_FACTS, *listeners, *_topic_defaults(defaults))}
    for name, setting in SETTINGS.items():
        found[name] = _setting(config, setting, is_given=name in given)
    found[_NODE_ID] = replace(found[_NODE_ID], value=str(node_id))
    for name, alias in KAFKA_NAMES.items():
        # A name in another unit (log.retention.hours) would report a number that was never set.
        # The listeners in effect are described above, whichever settings they come from.
        if alias.scale == 1 and name not in _LISTENER_NAMES:
            found[name] = replace(found[alias.setting], name=name)
    return dict(sorted(found.items()))


def _listeners(endpoints: Sequence[Endpoint]) -> list[BrokerConfig]:
    """Kafka's names for listeners: tools read them, and Kafka always sets them."""
    open_ones = [each for each in endpoints if not each.address.is_closed]
    values = {
        "listeners": [f"{each.name}://{each.address}" for each in open_ones],
        "advertised.listeners": [
            f"{each.name}://{each.advertised or each.address}" for each in open_ones
        ],
        "listener.security.protocol.map": [
            f"{each.name}:{protocol_of(each)}" for each in open_ones
        ],
    }
    return [
        BrokerConfig(
            name=name,
            kind=ConfigKind.LIST,
            value=",".join(value),
            default=None,
            about=partial(_documentation, KAFKA_NAMES[name].setting),
            setting=KAFKA_NAMES[name].setting,
        )
        for name, value in values.items()
    ]


def _setting(config: Config, setting: Setting, *, is_given: bool) -> BrokerConfig:
    return BrokerConfig(
        name=setting.name,
        kind=_kind(setting),
        value=_text(getattr(getattr(config, setting.section), setting.field)),
        default=_text(setting.default),
        about=partial(_documentation, setting.name),
        setting=setting.name,
        is_given=is_given,
    )


def _topic_defaults(defaults: TopicDefaults) -> list[BrokerConfig]:
    """Kafka's broker defaults of topic configs; a setting of the same name replaces one."""
    return [
        BrokerConfig(
            name=config.broker,
            kind=config.type.kind,
            value=defaults[config.name],
            default=config.default,
            about=constant(f"Default of the topic config `{config.name}`. {config.documentation}"),
        )
        for config in TOPIC_CONFIGS.values()
        if config.broker is not None
    ]


def _documentation(setting: str) -> str:
    section, _, field = setting.partition(".")
    return _section_documentation(section)[field]


@cache
def _section_documentation(section: str) -> Mapping[str, str]:
    # Read from the source on request: that takes milliseconds, and few clients ask.
    return documentation_of(get_type_hints(Config)[section])


def _text(value: object) -> str | None:
    return None if value is None else show(value)


def _kind(setting: Setting) -> ConfigKind:
    hint = setting.hint
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if hint is bool:
        return ConfigKind.BOOLEAN
    if hint is float:
        return ConfigKind.DOUBLE
    if hint is int:
        is_small = setting.maximum is not None and setting.maximum <= _INT_MAX
        return ConfigKind.INT if is_small else ConfigKind.LONG
    return ConfigKind.STRING


def topic_defaults(config: Config) -> TopicDefaults:
    """The defaults of topic configs under these settings."""
    values = {
        name: show(_value(config, alias.setting))
        for name, topic_config in TOPIC_CONFIGS.items()
        if (alias := KAFKA_NAMES.get(topic_config.broker or "")) is not None
    }
    if config.store.flush == "sync":
        values[FLUSH_EACH] = "1"
    return TopicDefaults(values)


def _value(config: Config, name: str) -> object:
    section, _, field = name.partition(".")
    return getattr(getattr(config, section), field)
