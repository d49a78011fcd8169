"""The broker: 26 and 25 config, 27, 306, 316, 329 cleanup, 907 slaves.

Behaviour
- Cleanup (old files, unused queues and topics) is automatic, by the settings of topics and server.
  A request for it is answered with success: there is nothing to be triggered.

Departs from RocketMQ
- 25 changes what can change while the server runs, and refuses the rest by name (NO_PERMISSION),
  with nothing changed; RocketMQ accepts every name, and some values that break the broker.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.remoting.admin.broker_settings import BrokerSettings
from rockgate.gateway.remoting.admin.properties_text import lines_of
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import HaStatus
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.api.store import ReadOnlyStore


class BrokerRequests:
    """Answers about the broker."""

    def __init__(
        self, *, store: ReadOnlyStore, settings: BrokerSettings, durability: Durability
    ) -> None:
        self._store = store
        self._settings = settings
        self._durability = durability

    def config(self, command: Command, caller: Caller) -> Reply:
        """26: settings by name, one a line."""
        return Command(ResponseCode.SUCCESS, body=lines_of(self._settings.current()))

    def set_config(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """25: change settings, all of them or none."""
        self._settings.change(command.body)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def ha_status(self, command: Command, caller: Caller) -> Reply:
        """907: a master without slaves."""
        status = HaStatus(master=True, master_commit_log_max_offset=self._store.log.end)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(status))

    def tidy_up(self, command: Command, caller: Caller) -> Reply:
        """27, 306, 316, 329: the server does it by itself."""
        return Command(ResponseCode.SUCCESS)
