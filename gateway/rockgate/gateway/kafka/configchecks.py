"""Topic configs as clients give them: known by name, read by type, checked together.

Every refusal is INVALID_CONFIG with a sentence that names the config and what it wants.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from rockgate.gateway.kafka.errors import RequestError
from rockgate.gateway.kafka.topicconfigs import TOPIC_CONFIGS, TopicConfig
from rockgate.protocol.kafka.errors import ErrorCode

_SHOWN_MAX = 80


def known(name: str) -> TopicConfig:
    """The config of that name; INVALID_CONFIG names the nearest if there is none."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        shown = name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…"
        near = difflib.get_close_matches(name[:_SHOWN_MAX], TOPIC_CONFIGS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(ErrorCode.INVALID_CONFIG, f"unknown topic config {shown!r}{hint}")
    return config


def read_value(name: str, text: str) -> str:
    """A value in its one form; INVALID_CONFIG if the config is unknown or does not take it."""
    try:
        return known(name).type.read(text)
    except ValueError as error:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{name} {error}") from None


def read_all(given: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Configs as a client gives them, checked alone and together. Of one named twice, the last."""
    found: dict[str, str] = {}
    for name, text in given:
        if text is None:
            raise RequestError(ErrorCode.INVALID_CONFIG, f"{known(name).name} has no value")
        found[name] = read_value(name, text)
    check_together(found)
    return found


def check_together(config: Mapping[str, str]) -> None:
    """Refuse configs that contradict each other; each by itself was read before."""
    least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
    low = int(config.get(least, TOPIC_CONFIGS[least].default))
    high = int(config.get(most, TOPIC_CONFIGS[most].default))
    if low > high:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{least} {low} is above {most} {high}")
