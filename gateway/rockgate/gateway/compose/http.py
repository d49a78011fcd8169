"""Assembles the HTTP listener: its pages, and who may read them."""

from __future__ import annotations

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.security import SecurityAssembly
from rockgate.gateway.http.access import PageAccess, Tokens
from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.http.tokens import FileToken, InvalidTokenFile, OauthTokens, read_token
from rockgate.gateway.runtime.errors import StartError


def page_access(config: Config, security: SecurityAssembly) -> PageAccess:
    """Decide about requests by the server's users and grants."""
    authentication = config.http.authentication

    def demands_login() -> bool:
        if authentication != "auto":
            return authentication == "on"
        return security.authorizer is not None or len(security.users) > 0

    return PageAccess(
        passwords=security.logins,
        failures=security.failures,
        audit=security.audit,
        access=security.authorizer,
        demands_login=demands_login,
        tokens=_tokens(config.http, security),
        is_clear_allowed=config.security.allow_plain_without_tls,
    )


def _tokens(config: HttpConfig, security: SecurityAssembly) -> Tokens | None:
    """What checks bearer tokens; None if none are taken."""
    if security.oauth_tokens is not None:
        return OauthTokens(security.oauth_tokens, security.is_disabled)
    if config.token_file is None:
        return None
    try:
        read_token(config.token_file)
    except InvalidTokenFile as error:
        raise StartError(f"Cannot use http.token_file. {error}") from None
    return FileToken(config.token_file, security.threads)
