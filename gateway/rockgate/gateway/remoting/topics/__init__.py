"""Topics on RocketMQ's wire, and the broker that name servers are told about."""
