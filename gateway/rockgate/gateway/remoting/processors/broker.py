"""The broker itself: 28 what it is doing, 26 how it is set."""

from __future__ import annotations

from rockgate.gateway.remoting.caller import Caller
from rockgate.gateway.remoting.config import RemotingConfig
from rockgate.gateway.remoting.dispatch import Reply
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import VERSION, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.store.store import Store


class BrokerRequests:
    """Answers 28 and 26."""

    def __init__(self, *, store: Store, config: RemotingConfig, address: str) -> None:
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
            "earliestMessageTimeStamp": "-1",
            "runtime": f"{(self._store.clock.now_ms() - self._started_ms) // 1000} seconds",
            "putTps": "0 0 0",
            "getTransferredTps": "0 0 0",
            "msgPutTotalTodayNow": "0",
            "msgGetTotalTodayNow": "0",
            "sendThreadPoolQueueSize": "0",
            "pullThreadPoolQueueSize": "0",
            "pageCacheLockTimeMills": "0",
        }
        return Command(ResponseCode.SUCCESS, body=javajson.encode(KeyValues(table=table)))

    def config(self, command: Command, caller: Caller) -> Reply:
        """26: settings by name, one a line."""
        lines = {
            "brokerName": self._config.broker_name,
            "brokerClusterName": self._config.cluster_name,
            "brokerId": "0",
            "brokerIP1": self._address,
            "maxMessageSize": str(self._config.message_bytes_max),
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        return Command(ResponseCode.SUCCESS, body=text.encode())
