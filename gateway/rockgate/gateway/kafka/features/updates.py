"""Which changes of a feature's level are possible: Kafka's rules, in its order and words."""

from __future__ import annotations

from enum import IntEnum

from rockgate.gateway.kafka.features.table import KRAFT_VERSION, METADATA_VERSION, Feature
from rockgate.gateway.runtime.quoting import quoted


class UpgradeType(IntEnum):
    """What a change may do to a level."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def why_not(
    name: str, feature: Feature | None, *, current: int, wanted: int, type_: int, node_id: int
) -> str:
    """Why a feature cannot be set to a level; nothing if it can."""
    if name == METADATA_VERSION and feature is not None and feature.low <= wanted < current:
        return _metadata(current, wanted, type_)
    reason = _reason(name, feature, current, wanted, type_, node_id)
    return f"Invalid update version {wanted} for feature {quoted(name)}. {reason}" if reason else ""


def _reason(
    name: str, feature: Feature | None, current: int, wanted: int, type_: int, node_id: int
) -> str:
    if type_ not in UpgradeType.__members__.values():
        return "The controller does not support the given upgrade type."
    if wanted < 0:
        return "A feature version cannot be less than 0."
    if feature is None:
        return f"Local controller {node_id} does not support this feature."
    if not feature.low <= wanted <= feature.high:
        return f"Local controller {node_id} only supports versions {feature.low}-{feature.high}."
    if wanted < current and type_ == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if wanted < current and name == KRAFT_VERSION:
        return "Can't downgrade the version of this feature."
    if wanted > current and type_ != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return ""


def _metadata(current: int, wanted: int, type_: int) -> str:
    """Configs and APIs are those of one release, which no level takes back."""
    refusals = {
        UpgradeType.SAFE_DOWNGRADE: "Refusing to perform the requested downgrade because it might "
        "delete metadata information.",
        UpgradeType.UNSAFE_DOWNGRADE: "Unsafe metadata downgrade is not supported in this version.",
    }
    try:
        refusal = refusals[UpgradeType(type_)]
    except (ValueError, KeyError):
        return (
            f"Invalid update version {wanted} for feature {METADATA_VERSION}. Can't downgrade the "
            "version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    return f"Unsupported {METADATA_VERSION} downgrade from {current} to {wanted}. {refusal}"
