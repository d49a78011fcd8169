"""What was changed while the server ran, in the log: a fold over the configuration.

A setting is changed for one broker or for all brokers, and the change for one is the stronger. It
overrides the configuration until it is taken back, and is effective once it is in the log. Both
wires change settings through this: RocketMQ's code 25 and the broker configs of Kafka's admin
clients. docs/internals/state.md has the shape of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_broker_settings"
_OF_ALL: Final = "*"
_LONG_MAX: Final = (1 << 63) - 1

Value = int | str
Section = TypeVar("Section")


class ChangeableSetting(NamedTuple):
    """A setting that can be changed."""

    section: type
    """The class of its section of the configuration."""
    field: str
    kind: type
    read: Callable[[object], object]
    """Returns a value of its type within its bounds; ValueError says what is wrong with it."""
    key: str
    """Its key in records, which is RocketMQ's name where that has one."""


class ChangedSettings:
    """Remembers changes, and tells those who have to know."""

    def __init__(self, journal: Journal, settings: Mapping[str, ChangeableSetting]) -> None:
        """`settings` are those that can be changed, by name."""
        self.settings = settings
        self._fold: KeyedFold[str, Value] = KeyedFold(
            journal, name="broker settings", topic=TOPIC, key=str, value=int | str
        )
        self.on_changed: list[Callable[[Collection[type]], None]] = []
        """Called with the classes of the sections that were changed."""

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    # Reading

    def knows(self, name: str) -> bool:
        """Whether a setting can be changed."""
        return name in self.settings

    def read(self, name: str, text: str) -> object:
        """A value of a setting; ValueError says what is wrong with it."""
        return self.settings[name].read(text)

    @staticmethod
    def text(value: object) -> str:
        """A value as text."""
        return str(value).lower() if isinstance(value, bool) else str(value)

    def at(self, *, of_all: bool) -> dict[str, object]:
        """What is set for all brokers, or for this one, by name."""
        found = {}
        for name in self.settings:
            value = self.find(name, of_all=of_all)
            if value is not None:
                found[name] = value
        return found

    def find(self, name: str, *, of_all: bool) -> object | None:
        """What a setting was changed to; a later version may have other limits."""
        setting = self.settings[name]
        value = self._fold.find(_key(name, setting, of_all=of_all))
        if value is None or isinstance(value, str) is not issubclass(setting.kind, str):
            return None
        try:
            return setting.read(setting.kind(value))
        except ValueError:
            return None

    def over(self, config: Section) -> Section:
        """Return a section of the configuration with what was changed.

        A configuration that contradicts a change is the stronger one.
        """
        changes: dict[str, Any] = {}
        for name, setting in self.settings.items():
            if setting.section is type(config):
                for of_all in (False, True):
                    value = self.find(name, of_all=of_all)
                    if value is not None:
                        changes.setdefault(setting.field, value)
        try:
            return replace(config, **changes) if changes else config  # type: ignore[type-var] # a section is a dataclass
        except ValueError:
            return config

    # Changing

    def put(self, changes: Mapping[str, object | None], *, of_all: bool = False) -> None:
        """Change settings by name, all or none; None is what is configured."""
        if not changes:
            return
        self._fold.put(
            {
                _key(name, self.settings[name], of_all=of_all): _stored(value)
                for name, value in changes.items()
            }
        )
        sections = {self.settings[name].section for name in changes}
        for notify in self.on_changed:
            notify(sections)

    def follow(self, config: Section, apply: Callable[[Section], None]) -> None:
        """Apply a section with what was changed, now and after each change of it."""

        def notify(sections: Collection[type]) -> None:
            if type(config) in sections:
                apply(self.over(config))

        self.on_changed.append(notify)
        changed = self.over(config)
        if changed != config:
            apply(changed)


def bounded(read: Callable[[object], object]) -> Callable[[object], object]:
    """Return a reader that accepts no number that a record cannot hold."""

    def read_bounded(given: object) -> object:
        value = read(given)
        if isinstance(value, int) and abs(value) > _LONG_MAX:
            raise ValueError(f"must be a 64-bit integer, not {value}")
        return value

    return read_bounded


def _key(name: str, setting: ChangeableSetting, *, of_all: bool) -> str:
    return _OF_ALL + name if of_all else setting.key


def _stored(value: object | None) -> Value | None:
    if isinstance(value, bool):
        return int(value)
    assert value is None or isinstance(value, (int, str)), "a setting is a number or a text"
    return value
