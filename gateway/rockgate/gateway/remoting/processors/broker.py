"""The broker: 28 runtime info, 26 and 25 config, 27, 306, 316, 329 cleanup, 907 slaves.

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
from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import VERSION, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.api.store import ReadOnlyStore


class BrokerRequests:
    """Answers about the broker."""

    def __init__(self, *, store: ReadOnlyStore, config: RemotingConfig, address: str) -> None:
        self._store = store
        self._config = config
        self._address = address
        self._started_ms = store.clock.now_ms()

    def runtime_info(self, command: Command, caller: Caller) -> Reply:
        """28: numbers by name, as mqadmin prints them."""
        log = self._store.log
        table = {
            "bootTimestamp": str(self._started_ms),
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": "rockgate as V5_5_0",
            "brokerRole": "ASYNC_MASTER",
            "brokerActive": "true",
            "commitLogMinOffset": str(log.start),
            "commitLogMaxOffset": str(log.end),
            "earliestMessageTimeStamp": str(self._earliest_ms()),
            "runtime": f"{(self._store.clock.now_ms() - self._started_ms) // 1000} seconds",
            "putTps": "0 0 0",
            "getTransferredTps": "0 0 0",
            "msgPutTotalTodayNow": "0",
            "msgGetTotalTodayNow": "0",
            "sendThreadPoolQueueSize": "0",
            "pullThreadPoolQueueSize": "0",
            "sendThreadPoolQueueHeadWaitTimeMills": "0",
            "pullThreadPoolQueueHeadWaitTimeMills": "0",
            "pageCacheLockTimeMills": "0",
            "commitLogDiskRatio": f"{self._store.disk_used_percent / 100:.4f}",
        }
        return Command(ResponseCode.SUCCESS, body=javajson.encode(KeyValues(table=table)))

    def _earliest_ms(self) -> int:
        """When the first entry of the log was stored; -1 of an empty log."""
        stored_ms = self._store.lookup.stored_ms(self._store.log.start)
        return -1 if stored_ms is None else stored_ms

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
