"""Merges the sources into the configuration in effect, and reports every problem at once.

File < environment < command line. An unknown name is an error that suggests the nearest known one.
Within one source a setting may be given once, by our name or by Kafka's.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_type_hints

from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.config.renamed import RENAMED
from rockgate.gateway.compose.config.sections import Config
from rockgate.gateway.compose.config.settings import Setting, environment_name, settings_of
from rockgate.gateway.compose.config.sources import Given
from rockgate.gateway.compose.config.values import read
from rockgate.gateway.runtime.errors import ConfigError

DEFAULT_ORIGIN = "default"
SETTINGS: Mapping[str, Setting] = settings_of(Config)
VARIABLES: Mapping[str, str] = {
    environment_name(name): name for name in (*KAFKA_NAMES, *RENAMED, *SETTINGS)
}


@dataclass(frozen=True, slots=True)
class Gathered:
    """The configuration in effect, and for each setting where its value came from."""

    config: Config
    origins: Mapping[str, str]
    deprecated: Mapping[str, str]
    """Old names that were used for renamed settings, each with where it was given."""

    @property
    def given(self) -> frozenset[str]:
        """The settings that were given a value, even if it is the default."""
        return frozenset(name for name, origin in self.origins.items() if origin != DEFAULT_ORIGIN)


def gather(*sources: Sequence[Given]) -> Gathered:
    """Apply the sources to the defaults, the strongest last; ConfigError lists every problem."""
    problems: list[str] = []
    chosen: dict[str, object] = {}
    origins = dict.fromkeys(SETTINGS, DEFAULT_ORIGIN)
    for source in sources:
        for name, (value, origin) in _resolve(source, problems).items():
            chosen[name], origins[name] = value, origin
    deprecated = _deprecated(sources, problems)
    config = _build(chosen, origins, problems)
    if config is None or problems:
        raise ConfigError(problems)
    return Gathered(config, origins, deprecated)


def _deprecated(sources: Iterable[Sequence[Given]], problems: list[str]) -> dict[str, str]:
    """The deprecated names in use; a setting given under both of its names is a problem."""
    origins = {given.name: given.origin for source in sources for given in source}
    found = {old: origins[old] for old in RENAMED if old in origins}
    for old, origin in found.items():
        if (new := RENAMED[old]) in origins:
            problems.append(
                f"Settings {old} ({origin}) and {new} ({origins[new]}) are the same."
                f" Remove {old}, which is deprecated."
            )
    return found


def _resolve(source: Iterable[Given], problems: list[str]) -> dict[str, tuple[object, str]]:
    """One source's settings by our own names; its problems are added to `problems`."""
    resolved: dict[str, tuple[object, str]] = {}
    used: dict[str, Given] = {}
    for given in source:
        alias = KAFKA_NAMES.get(given.name)
        name = alias.setting if alias else RENAMED.get(given.name, given.name)
        setting = SETTINGS.get(name)
        if setting is None:
            problems.append(_unknown(given))
            continue
        if setting.name in used:
            # Old and new name of a renamed setting are reported once, over all sources.
            if not {given.name, used[setting.name].name} & RENAMED.keys():
                other = used[setting.name]
                problems.append(
                    f"Setting {given.name} ({given.origin}) duplicates"
                    f" {other.name} ({other.origin})."
                )
            continue
        used[setting.name] = given
        try:
            value = _scaled(given.value, alias.scale) if alias else given.value
            resolved[setting.name] = (setting.read(value), _origin(given, setting))
        except ValueError as error:
            problems.append(f"Setting {given.name} ({given.origin}) {error}.")
    return resolved


def _scaled(given: object, scale: int) -> object:
    """Kafka's number in our unit; a negative one means "unlimited" in both and stays."""
    if scale == 1:
        return given
    count = read(given, int, {})
    assert isinstance(count, int)
    return count * scale if count > 0 else count


def _origin(given: Given, setting: Setting) -> str:
    is_alias = given.name != setting.name and not given.origin.startswith("environment")
    return f"{given.origin} {given.name}" if is_alias else given.origin


def _unknown(given: Given) -> str:
    is_variable = given.origin.startswith("environment")
    known = list(VARIABLES if is_variable else (*SETTINGS, *KAFKA_NAMES))
    where = "environment" if is_variable else given.origin
    unknown = f"Unknown setting {given.name!r} ({where})."
    sections = {setting.section for setting in SETTINGS.values()}
    if given.name in sections:
        example = next(name for name in SETTINGS if name.startswith(f"{given.name}."))
        return f"{unknown} This is a section; set a key in it, such as {example}."
    near = difflib.get_close_matches(given.name, known, n=1, cutoff=0.6)
    if not near:
        # A known key in the wrong section, or without one, is still suggested.
        last = given.name.rpartition(".")[2]
        near = [name for name, setting in SETTINGS.items() if setting.field == last][:1]
    hint = f"Did you mean {near[0]!r}?" if near else "Run `rockgate config` for a list."
    return f"{unknown} {hint}"


def _build(
    chosen: Mapping[str, object], origins: Mapping[str, str], problems: list[str]
) -> Config | None:
    """The dataclasses; a section's own check may reject a combination with a ValueError."""
    sections: dict[str, object] = {}
    for section, cls in get_type_hints(Config).items():
        mine = {
            setting.field: chosen[name]
            for name, setting in SETTINGS.items()
            if setting.section == section and name in chosen
        }
        try:
            sections[section] = cls(**mine)
        except ValueError as error:
            given = sorted({origins[f"{section}.{field}"] for field in mine})
            problems.append(f"Invalid settings in {section} ({', '.join(given)}): {error}.")
    return None if problems else Config(**sections)  # type: ignore[arg-type] # fields and hints agree
