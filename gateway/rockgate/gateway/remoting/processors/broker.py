"""The broker: 26 and 25 config, 27, 306, 316, 329 cleanup, 907 slaves.

Behaviour
- Cleanup (old files, unused queues and topics) is automatic, by the settings of topics and server.
  A request for it is answered with success: there is nothing to be triggered.

Departs from RocketMQ
- Settings are not changed over this wire: 25 with another value is NO_PERMISSION and says why. What
  can be changed while the server runs are configs of topics and groups.
"""

from __future__ import annotations

from rockgate.gateway.remoting.admin.fixed_settings import lines_of, refuse_changes
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import HaStatus
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.api.store import ReadOnlyStore


class BrokerRequests:
    """Answers about the broker."""

    def __init__(self, *, store: ReadOnlyStore, config: RemotingConfig, address: str) -> None:
        self._store = store
        self._config = config
        self._address = address

    def config(self, command: Command, caller: Caller) -> Reply:
        """26: settings by name, one a line."""
        return Command(ResponseCode.SUCCESS, body=lines_of(self._settings()))

    def set_config(self, command: Command, caller: Caller) -> Reply:
        """25: what it says already is fine, and nothing else is set."""
        refuse_changes(command.body, self._settings())
        return Command(ResponseCode.SUCCESS)

    def ha_status(self, command: Command, caller: Caller) -> Reply:
        """907: a master without slaves."""
        status = HaStatus(master=True, master_commit_log_max_offset=self._store.log.end)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(status))

    def tidy_up(self, command: Command, caller: Caller) -> Reply:
        """27, 306, 316, 329: the server does it by itself."""
        return Command(ResponseCode.SUCCESS)

    def _settings(self) -> dict[str, str]:
        return {
            "brokerName": self._config.broker_name,
            "brokerClusterName": self._config.cluster_name,
            "brokerId": "0",
            "brokerIP1": self._address,
            "maxMessageSize": str(self._config.message_bytes_max),
        }
