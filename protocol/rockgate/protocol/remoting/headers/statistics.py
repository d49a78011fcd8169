"""Headers of statistics."""

import msgspec


class ViewStatsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """315: one label of one set."""

    stats_name: str
    stats_key: str
