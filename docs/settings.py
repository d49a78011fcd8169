"""The tables of docs/reference/operations.md: every setting, and Kafka's names for some of them.

A setting is documented by the string under its field in its dataclass, and nowhere else. Only the
part of the page between the two marks is written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

from rockgate.gateway.compose.config import SETTINGS, Config
from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.config.renamed import RENAMED
from rockgate.gateway.compose.config.settings import Setting, documentation_of
from rockgate.gateway.compose.config.values import kind_of, show

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/operations.md"
BEGIN = "<!-- settings: written by `make docs` from the dataclasses of each room -->"
END = "<!-- end of the settings -->"


def render(root: Path = ROOT) -> str:
    """The page with its tables as the settings are now."""
    text = (root / PAGE).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{PAGE} must hold each mark of the settings once")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    lines = [*setting_lines(), *kafka_lines()]
    return "".join([before, BEGIN, "\n\n", "\n".join(lines), "\n", END, after])


def setting_lines() -> Iterator[str]:
    """For each section what it is about, then a table of its settings."""
    for section, cls in get_type_hints(Config).items():
        documentation = documentation_of(cls)
        yield from (f"### [{section}]", "", (cls.__doc__ or "").strip(), "")
        yield from ("| setting | type | default | description |", "|---|---|---|---|")
        for setting in SETTINGS.values():
            if setting.section == section:
                text = documentation[setting.field]
                yield f"| `{setting.name}` | {kind(setting)} | {default(setting)} | {text} |"
        yield ""


def kafka_lines() -> Iterator[str]:
    """Kafka's names beside ours, and our own that are deprecated."""
    yield from ("### Kafka's names", "", "| Kafka's | ours |", "|---|---|")
    for name, alias in KAFKA_NAMES.items():
        scale = f" (times {alias.scale})" if alias.scale != 1 else ""
        yield f"| `{name}` | `{alias.setting}`{scale} |"
    yield from ("", "### Deprecated names", "", "| deprecated | use |", "|---|---|")
    for old, new in RENAMED.items():
        yield f"| `{old}` | `{new}` |"
    yield ""


def kind(setting: Setting) -> str:
    """What may be given."""
    name = kind_of(setting.hint)
    if setting.minimum is None or setting.maximum is None:
        return name
    # The largest value of an integer type says nothing to people.
    bound = "" if setting.maximum >= 2**31 - 1 else f" to {setting.maximum}"
    return f"{name} from {setting.minimum}{bound}"


def default(setting: Setting) -> str:
    """What holds when nothing is given."""
    return "-" if setting.default is None else f"`{show(setting.default)}`"
