"""The HTTP listener: probes and metrics only; small enough to need no framework."""
