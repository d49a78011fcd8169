"""Observability: message traces, OpenTelemetry, statistics and Prometheus."""
