"""What OAUTHBEARER needs, made from the settings. Imported by servers that have it only."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.oauth.bearer import BearerTokens
from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.oauth.key_source import KeyFile, KeyServer, KeysUnavailable
from rockgate.gateway.security.oauth.keys import SigningKeys
from rockgate.gateway.security.oauth.signing_keys import InvalidKeys
from rockgate.store.api.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Oauth:
    """What checks tokens, and the keys that upkeep renews."""

    tokens: BearerTokens
    keys: SigningKeys

    @classmethod
    def make(cls, config: OauthConfig, clock: Clock, resources: AsyncExitStack) -> Oauth:
        """Read the keys, if they are in a file; those of a URL are fetched by upkeep."""
        source = config.source()
        if source is None:
            raise StartError(
                "OAUTHBEARER is enabled in security.sasl_mechanisms, but there are no keys to check"
                " tokens with. Set oauth.jwks to a file or an HTTPS URL with a JSON Web Key Set."
            )
        try:
            if isinstance(source, Path):
                place: KeyFile | KeyServer = KeyFile(source)
            else:
                place = KeyServer(source, config.ca_file)
            keys = SigningKeys(place, refresh_ms=config.refresh_ms, monotonic_ms=clock.monotonic_ms)
            resources.callback(keys.close)
            if isinstance(place, KeyFile):
                keys.read_now()
        except (KeysUnavailable, InvalidKeys) as error:
            raise StartError(
                f"Cannot use the keys of oauth.jwks {config.jwks}: {error}. Check the path, its"
                " owner, and that it has a JSON Web Key Set."
            ) from None
        if not config.issuer and not config.audiences():
            log.warning("tokens of any issuer and audience are accepted; set oauth.audience")
        return cls(BearerTokens(config, keys, clock.now_ms), keys)
