"""Who a request of RocketMQ's clients comes from, and whether it may be served."""
