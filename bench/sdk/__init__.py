"""The native client beside RocketMQ's Java client: sending, and the push consumer."""
