"""The handlers of Kafka's APIs that are written again for a RocketMQ cluster."""
