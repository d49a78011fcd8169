"""The table of handlers: what this server speaks. ApiVersions and docs/protocol.md come from it.

One line per API, in key order. A row's `make` picks, of all services, what its handler uses. No
handler imports another.
"""

from dataclasses import dataclass

from rockgate.gateway.identity import Identity
from rockgate.gateway.kafka.advertised import Advertised
from rockgate.gateway.kafka.handler import Row, row
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions, unsupported
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What handlers can be made of; the app brings it together, and no handler sees it."""

    identity: Identity
    advertised: Advertised
    store: Store


HANDLERS: tuple[Row[Services], ...] = (
    row(
        ApiKey.API_VERSIONS,
        lambda _: ApiVersions({each.key: each.advertised for each in HANDLERS}),
        answer_unknown_version=unsupported,
    ),
)
