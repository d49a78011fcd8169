"""Translation between the protocols: Kafka record batches as RocketMQ messages and back.

docs/internals/mapping.md specifies it and has the dictionary as a table. Each side reads its own
kind as it lies in the log; only what the other side wrote comes through here, at read time.
"""
