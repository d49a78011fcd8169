"""Settings of groups."""

from dataclasses import dataclass, field

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig:
    """Consumer groups: their times, their sizes, and how long offsets are kept."""

    initial_delay_ms: int = field(default=3_000, metadata={"minimum": 0, "maximum": INT_MAX})
    """How long an empty group waits for more members before its first assignment."""
    session_ms_min: int = field(default=6_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Shortest session timeout that a member may ask for."""
    session_ms_max: int = field(default=1_800_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Longest session timeout that a member may ask for."""
    members_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Members of one group; one more is refused."""
    groups_max: int = field(default=100_000, metadata={"minimum": 1, "maximum": INT_MAX})
    """Groups with members at a time; the first member of one more is told to come back later."""
    offsets_retention_ms: int = field(
        default=604_800_000, metadata={"minimum": 60_000, "maximum": 2**63 - 1}
    )
    """How long a group's offsets are kept after its last member has left."""
    offsets_check_ms: int = field(default=600_000, metadata={"minimum": 1, "maximum": 2**53})
    """How often offsets are looked through for those to forget."""
    metadata_bytes_max: int = field(default=4_096, metadata={"minimum": 0, "maximum": 32_767})
    """Longest text that a client may keep with a committed offset."""

    def __post_init__(self) -> None:
        if self.session_ms_min > self.session_ms_max:
            raise ValueError("session_ms_min is larger than session_ms_max")
