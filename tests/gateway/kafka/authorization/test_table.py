"""Every API is in the table of authorization."""

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.authorization.table import RULES, Open, Within
from rockgate.protocol.kafka.keys import ApiKey

NEEDS_NOTHING = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_every_api_that_is_served_has_a_rule() -> None:
    missing = [row.key.name for row in HANDLERS if row.key not in RULES]
    assert missing == []


def test_only_what_comes_before_authentication_is_open() -> None:
    is_open = {key for key, rule in RULES.items() if type(rule) is Open}
    assert is_open == NEEDS_NOTHING


def test_a_rule_within_a_handler_says_what_is_asked() -> None:
    assert all(rule.reason for rule in RULES.values() if isinstance(rule, Within))
