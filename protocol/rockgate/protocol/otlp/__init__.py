"""OpenTelemetry's metrics in protobuf, as Kafka's clients push them: the few fields that count."""
