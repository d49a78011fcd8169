"""The native Python client; it speaks RocketMQ's remoting protocol."""
