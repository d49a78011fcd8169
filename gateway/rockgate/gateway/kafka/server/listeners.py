"""Kafka's listeners: names, security protocols and advertised addresses, from the settings.

`kafka.listen` is the first, and `kafka.listeners` has the others. If only the latter is given, its
first is the first, so that a Kafka broker's `listeners` mean here what they mean there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Authentication, Endpoint, TlsMode
from rockgate.gateway.net.listening.listener_list import read_listeners, read_map

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

_MEANINGS: Final[Mapping[str, tuple[TlsMode, Authentication]]] = {
    "PLAINTEXT": ("disabled", "none"),
    "SSL": ("enforcing", "none"),
    "SASL_PLAINTEXT": ("disabled", "sasl"),
    "SASL_SSL": ("enforcing", "sasl"),
}


def kafka_endpoints(
    *,
    listen: Address,
    is_listen_given: bool,
    security_protocol: str,
    advertise: Address | None,
    listeners: str,
    advertised_listeners: str,
    listener_security: str,
) -> list[Endpoint]:
    """The endpoints in order, or a closed one; ValueError if the settings contradict each other."""
    others = read_listeners(listeners, "listeners")
    advertised = dict(read_listeners(advertised_listeners, "advertised_listeners"))
    protocols = {name: name for name in _MEANINGS} | {
        name: value.upper()
        for name, value in read_map(listener_security, "listener_security").items()
    }
    for name, protocol in protocols.items():
        if protocol not in _MEANINGS:
            raise ValueError(
                f"listener_security must be one of {', '.join(_MEANINGS)} for {name},"
                f" not {protocol}"
            )
    addresses = {} if others and not is_listen_given else {security_protocol: listen}
    if clash := addresses.keys() & others.keys():
        raise ValueError(f"listeners has {clash.pop()}, which is the name of kafka.listen")
    protocols |= dict.fromkeys(addresses, security_protocol)
    addresses |= others
    _check_names(addresses, advertised, protocols)
    first = next(iter(addresses))
    if advertise is not None:
        if first in advertised:
            raise ValueError(f"advertised_listeners has {first}, which advertise is for")
        advertised[first] = advertise
    made = []
    for name, address in addresses.items():
        tls, authentication = _MEANINGS[protocols[name]]
        made.append(
            Endpoint(
                protocol="kafka",
                name=name,
                address=address,
                advertised=advertised.get(name),
                tls=tls,
                authentication=authentication,
                is_first=name == first,
            )
        )
    return made


def _check_names(
    addresses: Collection[str], advertised: Mapping[str, Address], protocols: Collection[str]
) -> None:
    for name in addresses:
        if name not in protocols:
            raise ValueError(
                f"listener_security must say which protocol {name} has, as in {name}:SASL_SSL"
            )
    for name, address in advertised.items():
        if name not in addresses:
            raise ValueError(f"advertised_listeners has {name}, which is not a listener")
        if address.port == 0 or address.is_wildcard:
            raise ValueError(
                f"advertised_listeners must have a HOST:PORT that clients can connect to for {name}"
            )


def protocol_of(endpoint: Endpoint) -> str:
    """The security protocol of an endpoint, in Kafka's words."""
    meaning = (endpoint.tls, endpoint.authentication)
    return next((name for name, each in _MEANINGS.items() if each == meaning), "PLAINTEXT")
