"""Settings of groups."""

from dataclasses import dataclass, field

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig:
    """Consumer groups: timeouts, limits and offset retention."""

    initial_delay_ms: int = field(default=3_000, metadata={"minimum": 0, "maximum": INT_MAX})
    """How long an empty group waits for more members before its first rebalance."""
    session_ms_min: int = field(default=6_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Minimum session timeout of a member."""
    session_ms_max: int = field(default=1_800_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Maximum session timeout of a member."""
    members_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Maximum number of members per group; further ones are rejected."""
    groups_max: int = field(default=100_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Maximum number of groups with members; joining a further one fails with a retriable error."""
    offsets_retention_ms: int = field(
        default=604_800_000, metadata={"minimum": 60_000, "maximum": 2**63 - 1}
    )
    """How long the offsets of a group are retained after its last member leaves."""
    offsets_check_ms: int = field(default=600_000, metadata={"minimum": 1, "maximum": 2**53})
    """Interval between checks for expired offsets."""
    metadata_bytes_max: int = field(default=4_096, metadata={"minimum": 0, "maximum": 32_767})
    """Maximum size of the metadata of a committed offset."""

    def __post_init__(self) -> None:
        if self.session_ms_min > self.session_ms_max:
            raise ValueError("session_ms_min exceeds session_ms_max")
