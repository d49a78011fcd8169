"""Users at RocketMQ's listener, which knows what Kafka's wire cannot say.

That is their type and status, and the secret of signatures. Here passwords are sent as they are, so
the connection has to be encrypted, or one to this machine.
"""

from __future__ import annotations

from typing import Final

from rockgate.cli.client.kafka.errors import BrokerUnreachable, NotServed, Unusable
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.gateway.net.listening.endpoint import is_loopback
from rockgate.sdk.admin.users import SIGNATURE as SIGNATURE
from rockgate.sdk.admin.users import UserAdmin

ABSENT: Final = (BrokerUnreachable, NotServed)
"""What is raised where there is no such listener, or it is another server's."""


def users_of(remoting: RemotingConnection) -> UserAdmin:
    """The users of the server."""
    return UserAdmin(remoting.command)


def check_private(remoting: RemotingConnection) -> None:
    """Unusable, if a password that is sent could be read on the way."""
    if not remoting.is_encrypted and not is_loopback(remoting.address.host):
        raise Unusable(
            f"The password would be sent to {remoting.address} in clear. Use a listener with TLS:"
            " set rocketmq.tls.enable=true in the file of --client-config"
        )
