"""Who is told of sends: traces and OpenTelemetry."""
