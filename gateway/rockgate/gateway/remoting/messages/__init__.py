"""Messages on RocketMQ's wire: sent, pulled, delayed, given back, half-sent and checked."""
