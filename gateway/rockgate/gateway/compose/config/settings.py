"""The list of all settings, read off the section dataclasses.

It knows the shape of a section and none in particular. Names are `section.field`; the environment
variable of `kafka.idle_ms_max` is `ROCKGATE_KAFKA_IDLE_MS_MAX`.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import get_type_hints

from rockgate.gateway.compose.config import values

ENVIRONMENT_PREFIX = "ROCKGATE_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One thing that can be set."""

    section: str
    field: str
    hint: object
    default: object
    minimum: int | None
    maximum: int | None

    @property
    def name(self) -> str:
        """The dotted name, as in the file and after --set."""
        return f"{self.section}.{self.field}"

    @property
    def environment(self) -> str:
        """The environment variable that sets it."""
        return environment_name(self.name)

    def read(self, given: object) -> object:
        """The given value, typed and within bounds; ValueError says what is wrong with it."""
        value = values.read(given, self.hint, values.units_of(self.field))
        if isinstance(value, int) and not isinstance(value, bool):
            if self.minimum is not None and value < self.minimum:
                raise ValueError(f"must be at least {self.minimum}, not {value}")
            if self.maximum is not None and value > self.maximum:
                raise ValueError(f"must be at most {self.maximum}, not {value}")
        return value


def environment_name(name: str) -> str:
    """The environment variable of a dotted name, ours or Kafka's."""
    return ENVIRONMENT_PREFIX + name.replace(".", "_").replace("-", "_").upper()


def settings_of(config: type) -> Mapping[str, Setting]:
    """Every setting of a configuration dataclass whose fields are sections, by dotted name."""
    found: dict[str, Setting] = {}
    for section, cls in get_type_hints(config).items():
        hints = get_type_hints(cls)
        for field in fields(cls):
            setting = Setting(
                section=section,
                field=field.name,
                hint=hints[field.name],
                default=field.default,
                minimum=field.metadata.get("minimum"),
                maximum=field.metadata.get("maximum"),
            )
            found[setting.name] = setting
    return found


def documentation_of(section: type) -> Mapping[str, str]:
    """The description of each setting of a section, by field name: the string under the field."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(section)))
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for statement, after in zip(definition.body, definition.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[statement.target.id] = " ".join(str(after.value.value).split())
    return found
