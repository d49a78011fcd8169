"""Where settings come from: a TOML file, the environment, the command line.

Each yields what was given, by name and origin. Nothing is interpreted at this point: unknown names
and values of the wrong type are reported later, with their origin.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rockgate.gateway.compose.config.settings import ENVIRONMENT_PREFIX
from rockgate.gateway.runtime.errors import ConfigError

CONFIG_VARIABLE = "ROCKGATE_CONFIG"
FILE_BYTES_MAX = 1 << 20

# Not settings: the path of the file, what clients connect with, variables of the pipeline, the
# tests and the benchmarks, and those that Docker links and Kubernetes set in every container next
# to a service called rockgate.
_NOT_SETTINGS = re.compile(
    "ROCKGATE_(CONFIG|BOOTSTRAP_SERVER|BROKER|CLIENT.*|CONNECTOR_JARS|SCHEMA_REGISTRY|BUDGET|SEED|COMPAT_.*|BENCH_.*"
    "|SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP)(_.*)?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One given setting: the name used, the value, and the source."""

    name: str
    value: object
    origin: str


def from_file(path: Path) -> Sequence[Given]:
    """The settings of a TOML file; tables and dotted keys alike become dotted names."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError([f"Cannot read {path}: {error.strerror}."]) from error
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError([f"File {path} exceeds {FILE_BYTES_MAX:,} bytes."])
    try:
        tables = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError([f"File {path} is not valid TOML: {error}."]) from error
    origin = f"file {path}"
    return [
        Given(name=name, value=value, origin=origin) for name, value in _flat("", tables, depth=0)
    ]


def from_environment(environment: Mapping[str, str], names: Mapping[str, str]) -> Sequence[Given]:
    """What the environment gives; `names` maps each known variable to its setting's dotted name.

    An unknown variable with our prefix is returned under its own name, so that it is reported.
    """
    return [
        Given(name=names.get(variable, variable), value=value, origin=f"environment {variable}")
        for variable, value in sorted(environment.items())
        if variable.startswith(ENVIRONMENT_PREFIX) and not is_no_setting(variable)
    ]


def is_no_setting(variable: str) -> bool:
    """Whether a variable with our prefix is known not to be a setting of the server."""
    return _NOT_SETTINGS.fullmatch(variable) is not None


def from_pairs(pairs: Sequence[str]) -> Sequence[Given]:
    """The settings of `--set KEY=VALUE`; a repeated key replaces the earlier one."""
    found: dict[str, Given] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError([f"Invalid --set: expected KEY=VALUE, got {pair!r}."])
        found[name.strip()] = Given(name=name.strip(), value=value.strip(), origin="--set")
    return list(found.values())


def from_flags(flags: Mapping[str, tuple[str, str | None]]) -> Sequence[Given]:
    """The settings of other flags: flag to (setting name, text); a flag not given has no text."""
    return [
        Given(name=name, value=text, origin=flag)
        for flag, (name, text) in flags.items()
        if text is not None
    ]


def _flat(prefix: str, table: Mapping[str, object], *, depth: int) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and depth < 8:
            yield from _flat(f"{name}.", value, depth=depth + 1)
        else:
            yield name, value
